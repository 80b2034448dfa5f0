//! Tests of how long conversations are stored.

use super::*;

fn policy(days: Option<u64>, owners: &[(&str, Option<u64>)]) -> RetentionPolicy {
    let owners = owners.iter().map(|(owner, days)| ((*owner).to_owned(), *days)).collect();
    RetentionPolicy { days, owners }
}

#[test]
fn policy_of_an_owner_goes_before_the_general_one() {
    let now = 100 * DAY_MS;
    let general = policy(Some(30), &[("kept", None), ("short", Some(1))]);
    assert_eq!(general.cutoff(&Owner::new("any"), now), Some(70 * DAY_MS));
    assert_eq!(general.cutoff(&Owner::new("kept"), now), None);
    assert_eq!(general.cutoff(&Owner::new("short"), now), Some(99 * DAY_MS));
    assert_eq!(general.latest_cutoff(now), Some(99 * DAY_MS));
}

#[test]
fn nothing_goes_without_days() {
    assert!(policy(None, &[("kept", None)]).is_empty());
    assert_eq!(policy(None, &[]).latest_cutoff(5), None);
    let some = policy(None, &[("short", Some(1))]);
    assert!(!some.is_empty());
    assert_eq!(some.cutoff(&Owner::new("any"), 5 * DAY_MS), None);
    assert_eq!(some.cutoff(&Owner::new("short"), 5 * DAY_MS), Some(4 * DAY_MS));
}
