//! What it takes to write the same bytes to as many connections: the physical limit.

use std::env;
use std::io::{BufRead, BufReader, Write, stdin};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::AnyError;
use super::clients::Clients;

/// The argument with which this program writes instead of measuring.
pub(crate) const ARGUMENT: &str = "write-to-all";
/// What each connection receives first.
const GREETING: &[u8] = b"marker-of-entry-000000";

/// Has another process write `bytes` to `many` connections, some times. Returns after how long the last
/// had them.
pub(crate) async fn measure(
    many: usize,
    bytes: usize,
    rounds: usize,
) -> Result<Vec<Duration>, AnyError> {
    let mut writer = Writer::start(many, bytes)?;
    let mut clients = Clients::open(many, &writer.address, "hello").await?;
    let mut times = Vec::new();
    for round in 1..=rounds {
        let begun = Instant::now();
        writer.write_round(round)?;
        times.push(clients.receive(&format!("marker-of-entry-{round:06}"), begun).await?.1);
    }
    Ok(times)
}

/// The other process.
struct Writer {
    child: Child,
    address: String,
}

impl Writer {
    fn start(many: usize, bytes: usize) -> Result<Writer, AnyError> {
        let mut child = Command::new(env::current_exe()?)
            .args([ARGUMENT, &many.to_string(), &bytes.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut address = String::new();
        let output = child.stdout.take().ok_or("no output")?;
        BufReader::new(output).read_line(&mut address)?;
        Ok(Writer { child, address: address.trim().to_owned() })
    }

    fn write_round(&mut self, round: usize) -> Result<(), AnyError> {
        let input = self.child.stdin.as_mut().ok_or("no input")?;
        writeln!(input, "{round}")?;
        Ok(input.flush()?)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Takes connections, and writes to all of them for each line of its input.
#[expect(clippy::print_stdout, reason = "it says where it listens")]
pub(crate) fn serve() -> Result<(), AnyError> {
    let mut numbers = env::args().skip(2).map(|number| number.parse::<usize>());
    let (many, bytes) = (numbers.next().ok_or("how many?")??, numbers.next().ok_or("bytes?")??);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    println!("{}", listener.local_addr()?);
    let mut open: Vec<TcpStream> = Vec::with_capacity(many);
    for stream in listener.incoming().take(many) {
        let mut stream = stream?;
        stream.set_nodelay(true)?;
        stream.write_all(GREETING)?;
        open.push(stream);
    }
    for line in stdin().lines() {
        let round: usize = line?.parse()?;
        let marker = format!("marker-of-entry-{round:06}");
        let mut message = vec![b'.'; bytes.saturating_sub(marker.len())];
        message.extend_from_slice(marker.as_bytes());
        for stream in &mut open {
            stream.write_all(&message)?;
        }
    }
    Ok(())
}
