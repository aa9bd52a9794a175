//! Templates that are small and would be endless: each is refused by its line, in bounded time and memory.
use std::collections::BTreeMap;

use claimant_local::stack::Stack;

const QUEUE: &str = "Resources:\n  Q:\n    Type: AWS::SQS::Queue\n";

/// How many lines refer ten times to the one before: 10 to the power of it.
const LINES: usize = 12;

fn lines(line: impl Fn(usize) -> String) -> String {
    (1..=LINES).map(line).collect()
}

fn refused(template: &str) -> String {
    Stack::parse(template, &BTreeMap::new()).unwrap_err().to_string()
}

#[test]
fn what_would_be_endless_is_refused() {
    let aliases = "A0: &a0 [x]\n".to_owned()
        + &lines(|n| format!("A{n}: &a{n} [{}]\n", vec![format!("*a{}", n - 1); 10].join(", ")));
    let conditions = lines(|n| format!("  C{n}: !And [{}]\n", vec![format!("!Condition C{}", n - 1); 10].join(", ")));
    let names = lines(|n| {
        let name = format!("${{Q{}.QueueName}}", n - 1).repeat(10);
        format!("  Q{n}: {{Type: AWS::SQS::Queue, Properties: {{QueueName: !Sub '{name}'}}}}\n")
    });
    let values = lines(|n| {
        format!("      k{n}: !Join ['', [{}]]\n", vec![format!("!FindInMap [M, a, k{}]", n - 1); 10].join(", "))
    });
    let long = "x".repeat(500_000);
    let items: Vec<_> = (0..1_000).map(|n| format!("i{n}")).collect();
    let items = items.join(",");
    let many: String = (0..3_000)
        .map(|n| format!("        Q{n}${{X}}: {{Type: AWS::SQS::Queue, Properties: {{DelaySeconds: 1}}}}\n"))
        .collect();
    let loop_of = |items: &str, text: &str| {
        format!(
            "{QUEUE}  Fn::ForEach::A:\n    - X\n    - [{items}]\n    - Q${{X}}: {{Type: AWS::SQS::Queue, Metadata: '{text}'}}\n"
        )
    };
    let table = [
        ("aliases of aliases", format!("{aliases}{QUEUE}"), "with those that aliases stand for"),
        (
            "conditions of conditions",
            format!("Conditions:\n  C0: !Equals [a, a]\n{conditions}{QUEUE}    Condition: C{LINES}\n"),
            "too much to evaluate",
        ),
        (
            "names made of names",
            format!("Resources:\n  Q0: {{Type: AWS::SQS::Queue, Properties: {{QueueName: a}}}}\n{names}"),
            "too much to evaluate",
        ),
        (
            "values of mappings made of values",
            format!(
                "Mappings:\n  M:\n    a:\n      k0: x\n{values}{QUEUE}    Properties: {{QueueName: !FindInMap [M, a, k{LINES}]}}\n"
            ),
            "too much to evaluate",
        ),
        (
            "a long text, many times",
            format!(
                "Parameters:\n  P: {{Type: String, Default: {long}}}\n{QUEUE}    Properties: {{QueueName: !Sub '{}'}}\n",
                "${P}".repeat(9_000)
            ),
            "too much to evaluate",
        ),
        (
            "a mapping's list within itself",
            format!(
                "Transform: AWS::Serverless-2016-10-31\nMappings: {{M: {{a: {{k: [!FindInMap [M, a, k]]}}}}}}\n{QUEUE}  F:\n    Type: AWS::Serverless::Function\n    Properties:\n      Runtime: provided.al2023\n      Events:\n        E:\n          Type: SQS\n          Properties:\n            Queue: !GetAtt Q.Arn\n            FilterCriteria: {{Filters: [{{Pattern: !FindInMap [M, a, k]}}]}}\n"
            ),
            "in a circle",
        ),
        (
            "loops within loops",
            format!(
                "Resources:\n  Fn::ForEach::A:\n    - X\n    - [{items}]\n    - Fn::ForEach::B:\n        - Y\n        - [{items}]\n        - Q${{X}}${{Y}}: {{Type: AWS::SQS::Queue}}\n"
            ),
            "more than 100000 values",
        ),
        (
            "a loop with a long body",
            format!("Resources:\n  Fn::ForEach::A:\n    - X\n    - [{items}]\n    -\n{many}"),
            "more than 100000 values",
        ),
        ("a loop with a long text", loop_of(&"a".repeat(1_000), &"${X}".repeat(200_000)), "more than 16777216 bytes"),
        ("a loop around a long text", loop_of(&items, &long), "more than 16777216 bytes"),
        // Each makes 250,000 times the form of logical ids.
        (
            "a loop whose item names it",
            loop_of(&format!("'{}'", "&{X}".repeat(250)), &"${X}".repeat(1_000)),
            "more than 16777216 bytes",
        ),
        ("a long template", format!("# {}\n{QUEUE}", "x".repeat(1_048_576)), "more than 1048576 bytes"),
    ];
    for (what, template, wanted) in table {
        let error = refused(&template);
        assert!(error.contains(wanted), "{what}: {}", &error[..error.len().min(500)]);
    }
}

#[test]
fn what_is_large_and_has_an_end_is_read() {
    // The loop comes after many values, none of which it writes out.
    let topics: String =
        (0..2_000).map(|n| format!("  T{n}: {{Type: AWS::SNS::Topic, Properties: {{TopicName: t{n}}}}}\n")).collect();
    let items: Vec<_> = (0..200).map(|n| format!("i{n}")).collect();
    let queues =
        format!("  Fn::ForEach::A:\n    - X\n    - [{}]\n    - Q${{X}}: {{Type: AWS::SQS::Queue}}\n", items.join(","));
    let stack = Stack::parse(&format!("Resources:\n{topics}{queues}"), &BTreeMap::new()).unwrap();
    assert_eq!(stack.queues.len(), 200);
}

#[test]
fn a_file_without_an_end_is_not_read_to_it() {
    let error = Stack::load(std::path::Path::new("/dev/zero"), &BTreeMap::new()).unwrap_err().to_string();
    assert!(error.contains("more than 1048576 bytes"), "{error}");
}
