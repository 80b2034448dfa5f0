//! Recognising processes that run and processes that have ended.

use super::*;

#[test]
fn this_process_is_alive() {
    let holder = this_process("test");
    assert_eq!(holder.process_id, std::process::id());
    assert!(is_alive(&holder));
}

#[test]
fn a_process_that_ended_is_not() {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let holder = Holder { process_id: child.id(), process_start: 0, ..this_process("child") };
    child.wait().unwrap();
    assert!(!is_alive(&holder));
}

#[cfg(target_os = "linux")]
#[test]
fn a_process_that_ended_is_not_alive_while_its_parent_has_not_noticed() {
    let mut child = std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
    let holder = Holder { process_id: child.id(), process_start: 0, ..this_process("child") };
    assert!(is_alive(&holder));
    drop(child.stdin.take());
    while is_alive(&holder) {
        std::thread::yield_now();
    }
    assert!(stat_of(child.id()).is_some(), "nobody has waited for it");
    child.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn another_process_with_the_same_id_is_not_the_holder() {
    let mut holder = this_process("test");
    holder.process_start += 1;
    assert!(!is_alive(&holder));
}

#[test]
fn a_holder_on_another_machine_counts_as_alive() {
    let holder = Holder { host: "elsewhere".to_owned(), process_id: u32::MAX, ..this_process("test") };
    assert!(is_alive(&holder));
}

#[test]
fn names_of_programs_with_brackets_do_not_shift_the_fields() {
    let stat = "12 (a) b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
    assert_eq!(start_in(stat), Some(4711));
    assert_eq!(start_in("12 (a) S 1 2"), None);
    assert_eq!(start_in(""), None);
}
