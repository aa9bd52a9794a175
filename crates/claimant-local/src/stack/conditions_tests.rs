//! Conditions, as a table: what they come to, and what is said of what they leave out.

use super::super::Stack;
use std::collections::BTreeMap;

/// A function, its queue and an environment value, all under the condition `C`; one more function without any.
const TEMPLATE: &str = r#"Transform: AWS::Serverless-2016-10-31
Parameters:
  DatabaseUrl: {Type: String, Default: "", NoEcho: true}
  Stage: {Type: String, Default: dev}
Conditions:
  HasDatabase: !Not [!Equals [!Ref DatabaseUrl, ""]]
  C: CONDITION
Resources:
  Stock: {Type: AWS::SQS::Queue, Condition: C}
  Other: {Type: AWS::SQS::Queue}
  Inventory:
    Type: AWS::Serverless::Function
    Condition: C
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: inventory}}
    Properties:
      Environment: {Variables: {DATABASE_URL: !Ref DatabaseUrl, QUEUE: !Ref Stock}}
      Events: {Stock: {Type: SQS, Properties: {Queue: !GetAtt Stock.Arn}}}
  Plain:
    Type: AWS::Serverless::Function
    Metadata: {BuildMethod: rust-cargolambda, BuildProperties: {Binary: plain}}
    Properties: {Environment: {Variables: {QUEUE: !Ref Other}}}
"#;

fn read(condition: &str, parameters: &[(&str, &str)]) -> Result<Stack, String> {
    let parameters = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let parameters: BTreeMap<_, _> = parameters.collect();
    Stack::parse(&TEMPLATE.replace("CONDITION", condition), &parameters).map_err(|e| e.to_string())
}

#[test]
fn conditions_hold_or_do_not() {
    let table = [
        ("!Condition HasDatabase", false, true),
        ("{Condition: HasDatabase}", false, true),
        ("!Not [!Condition HasDatabase]", true, false),
        ("!Equals [!Ref Stage, dev]", true, true),
        (r#"{"Fn::Equals": [{Ref: Stage}, prod]}"#, false, false),
        ("!Equals [!Sub \"${Stage}-${DatabaseUrl}\", \"dev-\"]", true, false),
        ("!And [!Condition HasDatabase, !Equals [!Ref Stage, dev]]", false, true),
        ("!Or [!Condition HasDatabase, !Equals [!Ref Stage, prod]]", false, true),
        ("!Or [!Condition HasDatabase, !Not [!Equals [!Ref Stage, prod]]]", true, true),
        ("!Equals [1, \"1\"]", true, true),
        ("!Equals [Yes, true]", true, true),
        ("!Equals [Yes, \"Yes\"]", false, false),
    ];
    for (condition, without, with) in table {
        for (parameters, expected) in [(&[][..], without), (&[("DatabaseUrl", "postgres://x")][..], with)] {
            let stack = read(condition, parameters).unwrap_or_else(|e| panic!("{condition}: {e}"));
            let functions: Vec<_> = stack.functions.iter().map(|f| f.binary.as_str()).collect();
            let queues = if expected { 2 } else { 1 };
            assert_eq!(functions.contains(&"inventory"), expected, "{condition} {parameters:?}");
            assert_eq!((stack.queues.len(), stack.left_out.len()), (queues, 2 - queues), "{condition}");
            assert!(functions.contains(&"plain"));
        }
    }
}

#[test]
fn what_is_left_out_is_told_in_a_line() {
    type Row = (&'static str, &'static [(&'static str, &'static str)], &'static str);
    let table: [Row; 9] = [
        (
            "!Condition HasDatabase",
            &[],
            "Inventory is left out: its condition C is false without a value of DatabaseUrl: \
             give --parameter DatabaseUrl=… to include it",
        ),
        ("!And [!Condition HasDatabase, !Equals [!Ref Stage, prod]]", &[], "without a value of DatabaseUrl"),
        (
            "!And [!Condition HasDatabase, !Equals [!Ref Stage, prod]]",
            &[("DatabaseUrl", "postgres://secret")],
            "is false with the values of DatabaseUrl, Stage: give --parameter DatabaseUrl=… --parameter Stage=…",
        ),
        ("!Equals [a, b]", &[], "its condition C is never true"),
        ("!Equals [!Sub '${Stage}', prod]", &[], "is false with the values of Stage: give --parameter Stage=…"),
        ("!Equals [!Sub ['${a}', {a: !Ref Stage}], prod]", &[], "is false with the values of Stage: give"),
        ("!Equals [!Join ['-', [!Ref Stage, x]], prod-x]", &[], "is false with the values of Stage: give"),
        ("!Equals [!Ref AWS::Region, eu-west-1]", &[], "its condition C is false here, where AWS::Region is us-east-1"),
        (
            "!And [!Equals [!Sub '${AWS::AccountId}', '1'], !Equals [!Ref Stage, prod]]",
            &[],
            "is false with the values of Stage here, where AWS::AccountId is 000000000000: \
             --parameter Stage=… may include it",
        ),
    ];
    for (condition, parameters, expected) in table {
        let stack = read(condition, parameters).unwrap_or_else(|e| panic!("{condition}: {e}"));
        let told = stack.left_out[0].to_string();
        assert!(told.contains(expected) && !told.contains("secret"), "{condition}: {told}");
        assert_eq!(stack.left_out[0].binary.as_deref(), Some("inventory"));
    }
}

/// The stand-in decides, and says so; what is under the condition is known all the same.
#[test]
fn a_condition_of_what_only_aws_knows_is_decided_by_a_stand_in_and_named() {
    let template = TEMPLATE
        .replace("{Type: String, Default: dev}", "{Type: 'AWS::SSM::Parameter::Value<String>', Default: /stage}");
    let template = template.replace("CONDITION", "!Not [!Equals [!Ref Stage, prod]]");
    let stack = Stack::parse(&template, &BTreeMap::new()).expect("it is sound");
    let [inventory, _] = stack.functions.as_slice() else { panic!("{:?}", stack.functions) };
    assert_eq!(inventory.mappings.iter().map(|mapping| mapping.queue.as_str()).collect::<Vec<_>>(), ["Stock"]);
    let line = "not run here: value Conditions.C (t.yaml:7): is the SSM parameter that Stage names: \
                give --parameter Stage=…: a stand-in for it decides the condition";
    assert_eq!(stack.not_run_lines("t.yaml"), [line]);
}

#[test]
fn faulty_conditions_say_what_is_wrong() {
    let table = [
        ("!Condition Nowhere", "Inventory: names the condition Nowhere"),
        ("!Condition C", "in a circle"),
        ("!Equals [a]", "wrong number of operands for !Equals"),
        ("!And [!Condition HasDatabase]", "!And and !Or 2 to 10"),
        ("!If [HasDatabase, a, b]", "uses !If"),
        ("true", "is no function"),
        ("!Equals [!Ref Nobody, a]", "refers to Nobody, which is no parameter"),
        ("!Equals [!Ref Stock, a]", "Inventory: has a condition that refers to Stock, which is no parameter"),
    ];
    for (condition, expected) in table {
        let error = read(condition, &[]).expect_err(condition);
        assert!(error.contains(expected), "{condition}: {error}");
    }
    let referring = TEMPLATE.replace("!Ref Other", "!Ref Stock").replace("CONDITION", "!Condition HasDatabase");
    let error = Stack::parse(&referring, &BTreeMap::new()).expect_err("a reference to nothing").to_string();
    assert!(
        error.contains("Plain.Properties.Environment.Variables.QUEUE: refers to Stock, which is left out"),
        "{error}"
    );
}
