//! Joins ES modules into one classic script, since browsers load no modules from files.
//!
//! Each module becomes a function that returns what it exports; imports become names taken from what others have returned.
//! Only the forms that the page uses are known: `import { a, b } from "./x.js";` and `export` before a declaration, each at
//! the start of a line. Any other form is an error, so that nothing is joined wrongly.

use std::fmt::Write;

/// The modules that `main` needs, each before those that import it, and `main` last. `sources`: names and texts of all
/// modules there are.
pub(super) fn join(sources: &[(&str, &str)], main: &str) -> Result<String, String> {
    let mut order = Vec::new();
    visit(sources, main, &mut order, &mut Vec::new())?;
    let mut script = String::from("\"use strict\";\nconst modules = {};\n");
    for name in order {
        let text = find(sources, name)?;
        let mut exported = Vec::new();
        let _ = writeln!(script, "modules[\"{name}\"] = (() => {{");
        for line in text.lines() {
            if let Some(import) = parse_import(name, line)? {
                let _ = writeln!(
                    script,
                    "const {{ {} }} = modules[\"{}\"];",
                    import.names.replace(" as ", ": "),
                    import.from
                );
            } else if let Some(declaration) = line.strip_prefix("export ") {
                exported.push(declared(name, declaration)?);
                let _ = writeln!(script, "{declaration}");
            } else {
                let _ = writeln!(script, "{line}");
            }
        }
        let _ = writeln!(script, "return {{ {} }};\n}})();", exported.join(", "));
    }
    Ok(script)
}

fn find<'a>(sources: &[(&str, &'a str)], name: &str) -> Result<&'a str, String> {
    let found = sources.iter().find(|source| source.0 == name);
    found.map(|source| source.1).ok_or_else(|| format!("there is no module {name}"))
}

fn visit<'a>(
    sources: &[(&str, &'a str)],
    name: &'a str,
    order: &mut Vec<&'a str>,
    path: &mut Vec<&'a str>,
) -> Result<(), String> {
    if path.contains(&name) {
        return Err(format!("{} imports itself: {}", name, path.join(" → ")));
    }
    if order.contains(&name) {
        return Ok(());
    }
    path.push(name);
    for line in find(sources, name)?.lines() {
        if let Some(import) = parse_import(name, line)? {
            visit(sources, import.from, order, path)?;
        }
    }
    path.pop();
    order.push(name);
    Ok(())
}

struct Import<'a> {
    names: &'a str,
    from: &'a str,
}

fn parse_import<'a>(name: &str, line: &'a str) -> Result<Option<Import<'a>>, String> {
    let Some(rest) = line.strip_prefix("import ") else { return Ok(None) };
    let parsed = rest
        .strip_prefix("{ ")
        .and_then(|rest| rest.split_once(" } from \"./"))
        .and_then(|(names, from)| Some(Import { names, from: from.strip_suffix("\";")? }));
    parsed.map(Some).ok_or_else(|| format!("{name}: no import that can be joined: {line}"))
}

/// The name that an exported declaration declares.
fn declared<'a>(name: &str, declaration: &'a str) -> Result<&'a str, String> {
    let known = ["const ", "let ", "class ", "function ", "async function "];
    let rest = known.iter().find_map(|keyword| declaration.strip_prefix(keyword));
    let end = |rest: &str| rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(rest.len());
    match rest.map(|rest| &rest[..end(rest)]) {
        Some(declared) if !declared.is_empty() => Ok(declared),
        _ => Err(format!("{name}: no export that can be joined: {declaration}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_before_those_that_need_them() {
        let sources = [
            ("main.js", "import { b as c } from \"./b.js\";\nc();\n"),
            ("b.js", "import { a } from \"./a.js\";\nexport function b() { return a; }\n"),
            ("a.js", "// a\nexport const a = 1;\n"),
            ("unused.js", "export const z = 1;\n"),
        ];
        let script = join(&sources, "main.js").unwrap();
        let at = |text: &str| script.find(text).unwrap_or_else(|| panic!("{text} in {script}"));
        assert!(
            at("const a = 1;") < at("function b()") && at("function b()") < at("const { b: c } = modules[\"b.js\"];")
        );
        assert!(script.contains("return { a };") && !script.contains("unused") && !script.contains("export"));
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let one = |text| join(&[("a.js", text)], "a.js");
        assert!(one("import x from \"./x.js\";\n").is_err());
        assert!(one("import { x } from \"./x.js\";\n").is_err());
        assert!(one("export default 3;\n").is_err());
        assert!(one("export { x };\n").is_err());
        let round = [("a.js", "import { b } from \"./b.js\";\n"), ("b.js", "import { a } from \"./a.js\";\n")];
        assert!(join(&round, "a.js").unwrap_err().contains("a.js → b.js"));
    }
}
