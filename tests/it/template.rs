//! What `template.yaml` grants.

use std::path::Path;

/// The functions whose records are in the lock table: the role of each, and the name of its consumer.
const CONSUMERS: [(&str, &str); 4] = [
    ("OrderConfirmationRole", "order-confirmation"),
    ("PaymentRole", "payment"),
    ("GiftCardRole", "gift-card"),
    ("LoyaltyRole", "loyalty"),
];

/// The project's file of this name.
fn file(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The resources and their texts: each begins with a line that is indented by two spaces.
fn resources(template: &str) -> Vec<(&str, String)> {
    let mut resources: Vec<(&str, String)> = Vec::new();
    for line in template.lines() {
        let name =
            line.strip_prefix("  ").and_then(|rest| rest.strip_suffix(':')).filter(|name| !name.starts_with(' '));
        match (name, resources.last_mut()) {
            (Some(name), _) => resources.push((name, String::new())),
            (None, Some((_, text))) => *text += &format!("{}\n", line.trim()),
            (None, None) => {}
        }
    }
    resources
}

#[test]
fn a_role_may_touch_the_records_of_its_own_consumer_only() {
    let template = file("template.yaml");
    let mut fenced = Vec::new();
    for (name, text) in resources(&template) {
        let grants = text.matches("Resource: !GetAtt LockTable.Arn").count();
        let consumer = CONSUMERS.iter().find(|(role, _)| *role == name).map(|(_, consumer)| consumer);
        let Some(consumer) = consumer else {
            assert_eq!(grants, 0, "{name} may touch the records of every consumer");
            continue;
        };
        let condition = format!(
            "Resource: !GetAtt LockTable.Arn\nCondition:\n\
             ForAllValues:StringLike: {{\"dynamodb:LeadingKeys\": [\"{consumer}#*\", \"{consumer}~*\"]}}\n\
             \"Null\": {{\"dynamodb:LeadingKeys\": \"false\"}}"
        );
        assert!(grants == 1 && text.contains(&condition), "{name} is not kept to the records of {consumer}:\n{text}");
        let main = file(&format!("functions/{consumer}/src/main.rs"));
        assert!(main.contains(&format!("(\"{consumer}\", ")), "{consumer} is not its consumer's name");
        fenced.push(name);
    }
    assert_eq!(fenced, CONSUMERS.map(|(role, _)| role));
}
