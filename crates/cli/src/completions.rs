//! `foveal completions`: for shells, and the manual page.

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::{Shell, generate};

use crate::arguments::{Arguments, Completions, ShellChoice};
use crate::output::Output;

pub fn run(completions: &Completions, output: Output) -> Result<()> {
    let mut command = Arguments::command();
    let mut text = Vec::new();
    let shell = match completions.shell {
        ShellChoice::Bash => Some(Shell::Bash),
        ShellChoice::Zsh => Some(Shell::Zsh),
        ShellChoice::Fish => Some(Shell::Fish),
        ShellChoice::Powershell => Some(Shell::PowerShell),
        ShellChoice::Elvish => Some(Shell::Elvish),
        ShellChoice::Man => None,
    };
    match shell {
        Some(shell) => generate(shell, &mut command, "foveal", &mut text),
        None => clap_mangen::Man::new(command).render(&mut text)?,
    }
    output.text(&String::from_utf8_lossy(&text))
}
