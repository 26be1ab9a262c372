//! Ranks that are gone.
//!
//! MPI itself says nothing of a rank that was killed: whoever waits for it waits for ever, unless the program that started them
//! notices. So every rank keeps a connection to rank 0, in a thread of its own, over which both send a sign of life every second.
//! The system closes the connections of a process that ends, however it ends. Rank 0 then says who it was, and tells the others:
//!
//! ```text
//! rank r → 0     HELLO cookie r,  then ALIVE every second,  then BYE
//! rank 0 → r     ALIVE every second,  GONE if some rank has gone,  BYE
//! ```
//!
//! What is said then also goes to the file that the variable `FOVEAL_MPI_REPORT` names: `mpirun` may lose it. (MPICH's
//! also kills the other ranks within milliseconds, now and then before one of them has noticed; its own report then names the process.)
//!
//! Whoever reads neither within [`SILENCE`], nor BYE before the end, is gone.

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::wire::{Wire, exit_now};
use crate::world::Member;

/// After so long without a sign, a rank is gone, or its machine, or the network between.
const SILENCE: Duration = Duration::from_secs(20);
/// Between two signs of life.
const BEAT: Duration = Duration::from_secs(1);
/// For a connection to be made.
const CONNECT: Duration = Duration::from_secs(2);
/// The variable that names a file in which a rank that has gone is named, too.
const REPORT: &str = "FOVEAL_MPI_REPORT";
/// For what is said to be passed on.
const HEARD: Duration = Duration::from_millis(500);
/// The code with which a rank ends because another one has.
const EXIT_CODE: i32 = 3;

const ALIVE: u8 = 1;
const GONE: u8 = 2;
const BYE: u8 = 3;

/// Where rank 0 is to be found, and what shows that it is.
#[derive(Serialize, Deserialize)]
struct Meeting {
    addresses: Vec<SocketAddr>,
    host: String,
    port: u16,
    cookie: u64,
}

/// Watches the other ranks until it is dropped.
pub(crate) struct Watch {
    /// Set when this rank is about to end as it should.
    leaving: Arc<AtomicBool>,
    lines: Arc<Mutex<Vec<TcpStream>>>,
    threads: Vec<JoinHandle<()>>,
}

impl Watch {
    /// Starts to watch; none if there is nobody to watch, or no way to reach rank 0 but MPI's. All ranks call it together.
    pub fn start(wire: &Wire, members: &[Member]) -> Option<Watch> {
        if wire.size() == 1 {
            return None;
        }
        let first = wire.rank() == 0;
        let listener = first.then(|| TcpListener::bind(("0.0.0.0", 0)).ok()).flatten();
        let invitation = listener.as_ref().and_then(|listener| meeting(listener, &members[0]));
        let text = invitation.as_ref().map(|meeting| serde_json::to_string(meeting).expect("numbers and texts"));
        let meeting: Option<Meeting> = serde_json::from_str(&wire.gather_text(&text.unwrap_or_default())[0]).ok();
        let lines = match (meeting, listener) {
            (Some(meeting), Some(listener)) => welcome(&listener, &meeting, wire.size()),
            (Some(meeting), None) => reach(&meeting, wire.rank()).map(|line| vec![(0, line)]),
            (None, _) => None,
        };
        // Who watches alone would take the others' silence for their end.
        let all = wire.gather_number(u64::from(lines.is_some())).iter().all(|reached| *reached == 1);
        if !all {
            if first {
                eprintln!(
                    "foveal-mpi: the ranks cannot reach rank 0 over TCP: whether one of them ends is for mpirun to notice"
                );
            }
            return None;
        }
        Some(Watch::over(lines.unwrap_or_default(), wire.rank(), members))
    }

    fn over(lines: Vec<(usize, TcpStream)>, rank: usize, members: &[Member]) -> Watch {
        let leaving = Arc::new(AtomicBool::new(false));
        let writers = lines.iter().filter_map(|(_, line)| line.try_clone().ok()).collect();
        let writers = Arc::new(Mutex::new(writers));
        let mut threads = Vec::new();
        for (other, line) in lines {
            let (leaving, writers, member) = (leaving.clone(), writers.clone(), members[other].clone());
            threads.push(thread::spawn(move || listen(line, rank, &member, &leaving, &writers)));
        }
        let (beats, to) = (leaving.clone(), writers.clone());
        thread::spawn(move || {
            while !beats.load(Ordering::Acquire) {
                say(&to, ALIVE);
                thread::sleep(BEAT);
            }
        });
        Watch { leaving, lines: writers, threads }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.leaving.store(true, Ordering::Release);
        // A rank that panics does not take leave: the others are to hear of it.
        if !thread::panicking() {
            say(&self.lines, BYE);
            self.threads.drain(..).for_each(|thread| drop(thread.join()));
        }
    }
}

/// Sends a sign to all at the other ends. Who does not take it is noticed by who reads.
fn say(lines: &Mutex<Vec<TcpStream>>, sign: u8) {
    for line in lines.lock().unwrap_or_else(PoisonError::into_inner).iter_mut() {
        let _ = line.write_all(&[sign]);
    }
}

/// Reads what one other rank says, until it takes leave.
fn listen(mut line: TcpStream, rank: usize, other: &Member, leaving: &AtomicBool, lines: &Mutex<Vec<TcpStream>>) {
    let mut sign = [0];
    loop {
        match line.read(&mut sign) {
            Ok(1) if sign[0] == ALIVE => {}
            Ok(1) if sign[0] == BYE => return,
            // Rank 0 has said who it was.
            Ok(1) if sign[0] == GONE => exit_now(EXIT_CODE),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            _ => break,
        }
    }
    let Member { rank: gone, host, process, .. } = other;
    // Of those who lose rank 0, one speaks for all.
    if rank <= 1 {
        let said = format!(
            "foveal-mpi: rank {gone} (process {process} on {host}) has ended in the middle of the run, and the run with it; \
             a training goes on from its last state with the same command\n"
        );
        // MPICH's mpirun ends the other ranks within milliseconds, and may drop what they have said last.
        if let Some(path) = std::env::var_os(REPORT) {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            let _ = file.and_then(|mut file| file.write_all(said.as_bytes()));
        }
        let _ = std::io::stderr().write_all(said.as_bytes());
        thread::sleep(HEARD);
    } else {
        // The one who speaks ends first.
        thread::sleep(2 * HEARD);
    }
    say(lines, GONE);
    if !leaving.load(Ordering::Acquire) || rank == 0 {
        exit_now(EXIT_CODE);
    }
}

/// Where this process can be reached.
fn meeting(listener: &TcpListener, own: &Member) -> Option<Meeting> {
    let port = listener.local_addr().ok()?.port();
    let cookie = u64::from(own.process) << 32 | u64::from(std::time::UNIX_EPOCH.elapsed().ok()?.subsec_nanos());
    let addresses = local_addresses().into_iter().map(|address| SocketAddr::new(address, port)).collect();
    Some(Meeting { addresses, host: own.host.clone(), port, cookie })
}

/// The addresses of this machine, as Linux lists them.
fn local_addresses() -> Vec<IpAddr> {
    let table = std::fs::read_to_string("/proc/net/fib_trie").unwrap_or_default();
    let mut addresses: Vec<IpAddr> = Vec::new();
    let lines: Vec<&str> = table.lines().map(str::trim).collect();
    for pair in lines.windows(2) {
        if let (Some(address), true) = (pair[0].strip_prefix("|-- "), pair[1].starts_with("/32 host LOCAL")) {
            addresses.extend(address.parse::<IpAddr>().ok().filter(|address| !addresses.contains(address)));
        }
    }
    addresses
}

/// The connections of all other ranks.
fn welcome(listener: &TcpListener, meeting: &Meeting, ranks: usize) -> Option<Vec<(usize, TcpStream)>> {
    listener.set_nonblocking(true).ok()?;
    let (mut lines, started) = (Vec::new(), std::time::Instant::now());
    // As long as the others may take with addresses that lead nowhere.
    let patience = CONNECT * (meeting.addresses.len() as u32 + 2);
    while lines.len() + 1 < ranks && started.elapsed() < patience {
        let Ok((mut line, _)) = listener.accept() else {
            thread::sleep(Duration::from_millis(5));
            continue;
        };
        let mut hello = [0; 16];
        let heard = line.set_nonblocking(false).and_then(|()| line.set_read_timeout(Some(CONNECT)));
        if heard.and_then(|()| line.read_exact(&mut hello)).is_err() {
            continue;
        }
        let [cookie, rank] = [0, 8].map(|n| u64::from_le_bytes(hello[n..n + 8].try_into().expect("eight bytes")));
        if cookie == meeting.cookie && line.write_all(&cookie.to_le_bytes()).is_ok() {
            line.set_read_timeout(Some(SILENCE)).ok()?;
            lines.push((rank as usize, line));
        }
    }
    (lines.len() + 1 == ranks).then_some(lines)
}

/// A connection to rank 0.
fn reach(meeting: &Meeting, rank: usize) -> Option<TcpStream> {
    let named = (meeting.host.as_str(), meeting.port).to_socket_addrs().into_iter().flatten();
    for address in meeting.addresses.iter().copied().chain(named) {
        let Ok(mut line) = TcpStream::connect_timeout(&address, CONNECT) else { continue };
        let hello = [meeting.cookie.to_le_bytes(), (rank as u64).to_le_bytes()].concat();
        let mut answer = [0; 8];
        let greeted = line.set_read_timeout(Some(CONNECT)).and_then(|()| line.write_all(&hello));
        if greeted.and_then(|()| line.read_exact(&mut answer)).is_ok() && answer == meeting.cookie.to_le_bytes() {
            let _ = line.set_nodelay(true);
            line.set_read_timeout(Some(SILENCE)).ok()?;
            return Some(line);
        }
    }
    None
}
