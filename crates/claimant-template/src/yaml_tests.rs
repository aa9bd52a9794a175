use super::*;

fn shown(node: &Node) -> String {
    let each = |nodes: &[Node]| nodes.iter().map(shown).collect::<Vec<_>>().join(" ");
    let kind = match &node.kind {
        Kind::Null => "null".to_owned(),
        Kind::Text(text) => text.to_string(),
        Kind::List(items) => format!("[{}]", each(items)),
        Kind::Map(entries) => {
            let entries: Vec<_> = entries.iter().map(|(key, value)| format!("{key}={}", shown(value))).collect();
            format!("{{{}}}", entries.join(" "))
        }
        Kind::Call(name, argument) => format!("{name}({})", shown(argument)),
    };
    format!("{kind}@{}", node.line)
}

/// Templates, and what is read.
const READ: &[(&str, &str)] = &[
    ("A: 012\nB:\n  C: ~\n", "{A=012@1 B={C=null@3}@2}@1"),
    ("A: !Ref X\nB: {Ref: X}\nC:\n  Fn::Sub: y", "{A=Ref(X@1)@1 B=Ref(X@2)@2 C=Sub(y@4)@3}@1"),
    ("!GetAtt [a, b]", "GetAtt([a@1 b@1]@1)@1"),
    ("{\n\t\"A\": {\"Fn::If\": [\"C\", \"\\ud83d\\ude00\", true]}\n}", "{A=If([C@2 😀@2 true@2]@2)@2}@1"),
    ("{Fn::ForEach::Q: [a]}", "{Fn::ForEach::Q=[a@1]@1}@1"),
    ("A: &a {x: 1, y: 2}\nB:\n  <<: *a\n  y: 3\nC: *a", "{A={x=1@1 y=2@1}@1 B={x=1@1 y=3@4}@2 C={x=1@1 y=2@1}@5}@1"),
    ("A: !!str 3\nB: ''\nC: 'null'", "{A=3@1 B=@2 C=null@3}@1"),
    ("", "null@1"),
    // A boolean of YAML 1.1 has the text that AWS makes of it, unless there are quotes or a tag.
    (
        "A: [Yes, OFF, true, y, 'Yes', !Ref On, !!str no]\nOn: |\n  yes",
        "{A=[true@1 false@1 true@1 y@1 Yes@1 Ref(On@1)@1 no@1]@1 true=yes\n@2}@1",
    ),
    // YAML 1.2 does not have these; CloudFormation and SAM CLI take them.
    (
        "A: !Join [-, [a, -]]\nB: {x: -}\nC: |\n  [-, b]\nD: \"[-, \\u002d]\"",
        "{A=Join([-@1 [a@1 -@1]@1]@1)@1 B={x=-@2}@2 C=[-, b]\n@3 D=[-, -]@5}@1",
    ),
    ("A:\n  B: {\n  x: 1,\n  y: [\n  z\n  ]\n  }\n  C: 2", "{A={B={x=1@3 y=[z@5]@4}@2 C=2@8}@1}@1"),
    ("A:\n  B: \"{\n    x\n  }\"\n  C: '\n  y'", "{A={B={ x }@2 C= y@5}@1}@1"),
];

#[test]
fn values_know_their_lines_and_functions_have_one_form() {
    for (text, expected) in READ {
        let node = parse(text).unwrap_or_else(|e| panic!("{text}: {} in line {}", e.what, e.line));
        assert_eq!(shown(&node), *expected, "{text}");
    }
}

/// Lines that each have `times` aliases of the one before.
fn aliases_of_aliases(lines: usize, times: usize) -> String {
    let line = |n: usize| format!("A{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); times].join(", "));
    "A0: &a0 [x]\n".to_owned() + &(1..lines).map(line).collect::<String>()
}

#[test]
fn many_keys_are_read_at_once() {
    // Each compared with all before it, these would be 20,000,000,000 comparisons.
    let text: String = (0..200_000).map(|n| format!("k{n}: v\n")).collect();
    assert_eq!(parse(&text).unwrap().entries().len(), 200_000);
}

#[test]
fn what_cannot_be_read_has_its_line() {
    let deep = "[".repeat(DEPTH_MAX + 1) + &"]".repeat(DEPTH_MAX + 1);
    for (text, line, what) in [
        ("A: 1\nA: 2", 2, "`A` is there twice"),
        ("A: 1\n[x]: 2", 2, "no text"),
        ("A: 1\nNull: 2", 2, "put one such as Null in quotes"),
        ("A: 1\nB: [", 2, ""),
        ("\n // of a person\n{\n  \"A\": 1\n}", 2, "JSON has no comments"),
        ("/* of a person */\n{\n  \"A\": 1\n}", 1, "JSON has no comments"),
        (&deep, 1, "more than 100"),
        (&aliases_of_aliases(9, 10), 7, "more than 600000 values"),
        (&aliases_of_aliases(5_000, 1), 99, "more than 100 collections"),
    ] {
        let error = parse(text).expect_err(text);
        assert!(error.line >= line && error.what.contains(what), "{text}: {error:?}");
        assert!(error.line == line || !what.starts_with("JSON"), "{text}: {error:?}");
    }
}

/// Whatever a template holds, it is read or refused: never a panic, never a loop without an end.
#[test]
fn what_is_a_little_wrong_is_read_or_refused() {
    const PIECES: &[&str] = &[
        "", "\n", "\n  ", "\t", "\r", " ", "-", "- ", ": ", ", ", "? ", "#", "[", "]", "{", "}", "'", "\"", "\\",
        "&a ", "*a", "!", "!<", "|\n", ">-", "%", "---\n", "...\n", "<<: ", "\u{feff}", "\u{85}", "\0", "é", "😀",
    ];
    for (text, _) in READ {
        for (at, c) in text.char_indices() {
            // Put in, in place of a character, and in place of all that follows.
            for rest in [&text[at..], &text[at + c.len_utf8()..], ""] {
                for piece in PIECES {
                    let text = format!("{}{piece}{rest}", &text[..at]);
                    if let Err(error) = parse(&text) {
                        assert!(error.line > 0 && !error.what.is_empty(), "{text:?}: {error:?}");
                    }
                }
            }
        }
    }
}
