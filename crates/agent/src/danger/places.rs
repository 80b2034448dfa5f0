//! Files and folders that are sensitive whichever program uses them.

use super::kind::Danger;

/// How a file is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Reads,
    Writes,
}

/// Whole disks, partitions and memory.
const DEVICES: [&str; 12] = [
    "/dev/sd",
    "/dev/hd",
    "/dev/vd",
    "/dev/xvd",
    "/dev/nvme",
    "/dev/disk",
    "/dev/mmcblk",
    "/dev/loop",
    "/dev/mapper",
    "/dev/dm-",
    "/dev/mem",
    "/dev/kmem",
];

/// Files with keys or passwords.
const SECRETS: [&str; 14] = [
    "/.ssh/id_",
    ".aws/credentials",
    "/.netrc",
    "/.gnupg",
    "/etc/shadow",
    "/etc/sudoers",
    ".git-credentials",
    "/.kube/config",
    "/.docker/config.json",
    "/.pypirc",
    "/.pgpass",
    "/.vault-token",
    "gh/hosts.yml",
    "/.npmrc",
];

/// Files that are run later without a question, or that decide what is run.
const RUN_LATER: [&str; 27] = [
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    "/.profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".config/fish",
    ".xinitrc",
    ".xprofile",
    ".gitconfig",
    ".git/",
    ".ssh/",
    "authorized_keys",
    ".config/autostart",
    ".config/systemd",
    "LaunchAgents",
    "LaunchDaemons",
    "/var/spool/cron",
    "/etc/",
    ".config/git/",
];

/// The danger of using a file, if there is one.
pub(super) fn danger(file: &str, how: Use) -> Option<Danger> {
    let mentions = |places: &[&str]| places.iter().any(|place| file.contains(place));
    if mentions(&DEVICES) {
        return Some(Danger::Device);
    }
    if how == Use::Writes && (mentions(&RUN_LATER) || file == ".profile") {
        return Some(Danger::RunsLater);
    }
    let is_environment = file.contains("/proc/") && file.ends_with("/environ");
    (mentions(&SECRETS) || is_environment).then_some(Danger::ShowsSecrets)
}

/// Whether a settings file usually contains keys: `.env`, but not its example.
pub(super) fn is_settings_with_keys(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    let is_example = ["example", "sample", "template", "dist"].iter().any(|word| name.ends_with(word));
    (name == ".env" || name.starts_with(".env.")) && !is_example
}

/// Whether the name of a variable suggests a secret.
pub(super) fn is_secret_name(variable: &str) -> bool {
    const MARKS: [&str; 9] = [
        "SECRET",
        "TOKEN",
        "PASSWORD",
        "PASSWD",
        "API_KEY",
        "APIKEY",
        "PRIVATE_KEY",
        "ACCESS_KEY",
        "CREDENTIAL",
    ];
    let variable = variable.to_ascii_uppercase();
    MARKS.iter().any(|mark| variable.contains(mark))
}
