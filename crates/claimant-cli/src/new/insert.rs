//! Text put into files that people write: everything else in them stays as it is, comments included.

/// Adds entries to the end of a top-level section of a YAML file, such as `Resources`. `entries` begin at the first column.
/// `apart` says whether a blank line comes before them.
///
/// # Errors
/// What is missing in the file, in words.
pub(super) fn into_section(yaml: &str, section: &str, entries: &str, apart: bool) -> Result<String, String> {
    let lines: Vec<_> = yaml.lines().collect();
    let start = lines.iter().position(|line| line.trim_end() == format!("{section}:"));
    let start = start.ok_or_else(|| format!("has no line `{section}:`"))?;
    let of_the_section = |line: &&str| line.starts_with([' ', '\t']) || line.trim().is_empty() || line.starts_with('#');
    let inside = lines[start + 1..].iter().take_while(|line| of_the_section(line)).count();
    // Comments at the first column, behind the last entry, are about what comes next.
    let inside = &lines[start + 1..start + 1 + inside];
    let Some(last) = inside.iter().rposition(|line| line.starts_with(' ')) else {
        return Err(format!("has nothing under `{section}:`"));
    };
    let first = inside.iter().find(|line| line.starts_with(' ') && !line.trim_start().starts_with('#'));
    let first = first.ok_or_else(|| format!("has only comments under `{section}:`"))?;
    let indent = &first[..first.len() - first.trim_start().len()];
    let mut added: Vec<String> = Vec::new();
    added.extend(apart.then(String::new));
    added.extend(entries.lines().map(|line| if line.is_empty() { String::new() } else { format!("{indent}{line}") }));
    let behind = start + 1 + last + 1;
    let all =
        lines[..behind].iter().copied().chain(added.iter().map(String::as_str)).chain(lines[behind..].iter().copied());
    Ok(joined(all, yaml))
}

/// Adds a crate to those that may use a crate which cargo-deny otherwise refuses; `None` where nothing is refused.
pub(super) fn into_wrappers(deny: &str, of: &str, wrapper: &str) -> Option<String> {
    let entry = format!("crate = \"{of}\", wrappers = [");
    let line =
        deny.lines().find(|line| line.contains(&entry) && line.contains(']') && !line.trim_start().starts_with('#'))?;
    let list = line.find(&entry)? + entry.len();
    let end = list + line[list..].find(']')?;
    let comma = if line[list..end].trim().is_empty() { "" } else { ", " };
    Some(deny.replacen(line, &format!("{}{comma}\"{wrapper}\"{}", &line[..end], &line[end..]), 1))
}

/// Whether some line of the file is this YAML or TOML key, wherever it is.
pub(super) fn has_key(text: &str, key: &str) -> bool {
    let is_key = |line: &str| {
        let rest = line.trim_start().strip_prefix(key).unwrap_or_default();
        rest.starts_with([':', '.']) || rest.trim_start().starts_with('=')
    };
    text.lines().any(is_key)
}

/// Whether a manifest has this key or table, such as `workspace.dependencies.serde`.
pub(super) fn has_path(manifest: &str, path: &str) -> bool {
    let is_in = |found: String| found.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    paths(manifest).any(|(found, _)| is_in(found))
}

/// Returns the text that a manifest has for this key, such as `profile.release.panic`; `None` where it has none.
pub(super) fn text_of<'a>(manifest: &'a str, path: &str) -> Option<&'a str> {
    let (_, value) = paths(manifest).find(|(found, _)| found == path)?;
    let value = value.trim_start_matches([' ', '\t']);
    let quote = value.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    value[1..].split_once(quote).map(|(text, _)| text)
}

/// Returns the texts of the list that a manifest has for this key, such as `workspace.members`.
pub(super) fn texts_of<'a>(manifest: &'a str, path: &str) -> Vec<&'a str> {
    let (mut texts, value) = (Vec::new(), paths(manifest).find(|(found, _)| found == path));
    let mut rest = value.map_or("", |(_, value)| value);
    while let Some(at) = rest.find(['"', '\'', '#', ']']) {
        let (mark, behind) = rest[at..].split_at(1);
        let end = match mark {
            "]" => break,
            "#" => "\n",
            quote => quote,
        };
        let Some((text, behind)) = behind.split_once(end) else { break };
        texts.extend((mark != "#").then_some(text));
        rest = behind;
    }
    texts
}

/// Returns each table and each key of a manifest, and all that is written behind a key. Inline tables are not looked into.
fn paths(manifest: &str) -> impl Iterator<Item = (String, &str)> {
    let (mut table, mut end) = (String::new(), 0);
    manifest.split_inclusive('\n').filter_map(move |line| {
        end += line.len();
        let line = line.trim_start();
        if let Some((header, _)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            table = plain(header);
            return Some((table.clone(), ""));
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        let path = format!("{table}.{}", plain(key));
        Some((path.trim_start_matches('.').to_owned(), &manifest[end - value.len()..]))
    })
}

/// Returns a TOML key without quotes and blanks.
fn plain(key: &str) -> String {
    key.replace(['"', '\'', ' ', '\t'], "")
}

/// The lines, ended as those of the file that they are of.
fn joined<'a>(lines: impl Iterator<Item = &'a str>, of: &str) -> String {
    let end = if of.contains("\r\n") { "\r\n" } else { "\n" };
    lines.flat_map(|line| [line, end]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "# Top\nResources:\n  # ---- A ----\n  A:\n    Type: T # why\n\n    # inside\n\n# About outputs\nOutputs:\n  X:\n    Value: 1\n";

    #[test]
    fn entries_go_to_the_end_of_their_section_and_nothing_else_changes() {
        let with_b = into_section(YAML, "Resources", "B:\n  Type: U\n\nC: 1\n", true).unwrap();
        let wanted = "# Top\nResources:\n  # ---- A ----\n  A:\n    Type: T # why\n\n    # inside\n\n  B:\n    Type: U\n\n  C: 1\n\n# About outputs\nOutputs:\n  X:\n    Value: 1\n";
        assert_eq!(with_b, wanted);
        let with_y = into_section(&with_b, "Outputs", "Y:\n  Value: 2\n", false).unwrap();
        assert_eq!(with_y, format!("{wanted}  Y:\n    Value: 2\n"));
        let windows = into_section(&YAML.replace('\n', "\r\n"), "Resources", "B: 1\n", true).unwrap();
        assert!(
            windows.contains("# inside\r\n\r\n  B: 1\r\n\r\n# About") && !windows.replace("\r\n", "").contains('\n')
        );
        let deeper = into_section("Resources:\n    A:\n        Type: T\n", "Resources", "B:\n  Type: U\n", false);
        assert_eq!(deeper.unwrap(), "Resources:\n    A:\n        Type: T\n    B:\n      Type: U\n");
    }

    #[test]
    fn a_section_that_cannot_be_added_to_is_said() {
        for (yaml, why) in [
            ("Outputs:\n  X: 1\n", "no line `Resources:`"),
            ("Resources: {A: 1}\n", "no line `Resources:`"),
            ("Resources:\nOutputs:\n  X: 1\n", "nothing under"),
            ("Resources:\n  # A: 1\n", "only comments"),
        ] {
            let error = into_section(yaml, "Resources", "B: 1\n", true).unwrap_err();
            assert!(error.contains(why), "{yaml}: {error}");
        }
    }

    #[test]
    fn a_wrapper_goes_to_the_end_of_its_list() {
        let deny = "# crate = \"sdk\", wrappers = []\ndeny = [\n    { crate = \"sdk\", wrappers = [\"a\", \"b\"] },\n    { crate = \"x\", wrappers = [] },\n]\n";
        let with = into_wrappers(deny, "sdk", "c").unwrap();
        assert_eq!(with, deny.replace("\"b\"]", "\"b\", \"c\"]"));
        assert_eq!(
            into_wrappers(deny, "x", "c").unwrap(),
            deny.replace("\"x\", wrappers = []", "\"x\", wrappers = [\"c\"]")
        );
        assert_eq!(into_wrappers(deny, "other", "c"), None);
    }

    #[test]
    fn keys_are_whole_words_at_the_start_of_a_line() {
        let text = "  WelcomeQueue:\nserde = \"1\"\nserde_json= \"1\"\ntokio.workspace = true\n# tracing = 1\n";
        for (key, there) in [
            ("WelcomeQueue", true),
            ("Welcome", false),
            ("serde", true),
            ("serde_json", true),
            ("tokio", true),
            ("tracing", false),
            ("Queue", false),
        ] {
            assert_eq!(has_key(text, key), there, "{key}");
        }
    }

    #[test]
    fn keys_of_a_manifest_are_in_their_own_tables() {
        let text = "[package]\nversion = \"1\"\n[dependencies]\nserde = \"1\"\n[workspace.package]\nedition = \"2024\"\n\
                    [workspace.dependencies]\n# old = \"1\"\n\"tokio\"= \"1\"\nserde_json.version = \"1\"\n\
                    [workspace.dependencies.claimant] # ours\npath = \"..\"\n[profile.dev.package]\ntracing = { opt-level = 1 }\n\
                    [workspace.lints.rust]\nunsafe_code = \"forbid\"\n";
        for (path, there) in [
            ("workspace.package.version", false),
            ("workspace.package.edition", true),
            ("workspace.dependencies.serde", false),
            ("workspace.dependencies.old", false),
            ("workspace.dependencies.tokio", true),
            ("workspace.dependencies.serde_json", true),
            ("workspace.dependencies.claimant", true),
            ("workspace.dependencies.tracing", false),
            ("workspace.lints", true),
            ("workspace.lint", false),
        ] {
            assert_eq!(has_path(text, path), there, "{path}");
        }
    }

    #[test]
    fn texts_of_a_manifest_are_those_of_its_list() {
        for (manifest, wanted) in [
            ("[workspace]\nmembers = ['a/*', \"b\"]\nexclude = [\"c\"]\n", &["a/*", "b"][..]),
            ("[workspace]\nmembers = [ # \"a\", or [b]\n  \"c[d]\",\n  # 'e'\n]\nresolver = \"3\"\n", &["c[d]"]),
            ("[workspace]\nresolver = \"3\"\n[other]\nmembers = [\"a\"]\n", &[]),
            ("workspace.members = [\"a\"]\n[package]\n", &["a"]),
            ("[workspace]\nmembers = [\"a", &[]),
        ] {
            assert_eq!(texts_of(manifest, "workspace.members"), wanted, "{manifest}");
        }
    }

    #[test]
    fn a_text_of_a_manifest_is_that_of_its_key() {
        for (manifest, wanted) in [
            ("[profile.release]\npanic = \"unwind\" # or \"abort\"\n", Some("unwind")),
            ("[profile.dev]\npanic='abort'\n[profile]\nrelease.panic='unwind'\n", Some("unwind")),
            ("[profile.release]\n# panic = \"unwind\"\nlto = \"fat\"\n[profile.dev]\npanic = \"unwind\"\n", None),
            ("[profile.release]\npanic =\n", None),
        ] {
            assert_eq!(text_of(manifest, "profile.release.panic"), wanted, "{manifest}");
        }
    }
}
