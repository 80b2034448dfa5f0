use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use rustix::process::{Pid, Signal, getpid, kill_process};

use super::*;

#[test]
fn signal_before_the_client_is_known_reaches_it() {
    let signals = SignalForwarder::new().unwrap();
    kill_process(getpid(), Signal::TERM).unwrap();
    let mut client = Command::new("sleep").arg("60").spawn().unwrap();
    signals.forward_to(Pid::from_raw(client.id().cast_signed()).unwrap());
    assert_eq!(client.wait().unwrap().signal(), Some(Signal::TERM.as_raw()));
}
