//! What `template.yaml` grants, and how its times go together.

use claimant_servers::repository;

/// The functions whose records are in the lock table: the role of each, and the name of its consumer.
const CONSUMERS: [(&str, &str); 5] = [
    ("OrderConfirmationRole", "order-confirmation"),
    ("PaymentRole", "payment"),
    ("GiftCardRole", "gift-card"),
    ("LoyaltyRole", "loyalty"),
    ("AuditRole", "audit"),
];

/// The project's file of this name.
fn file(name: &str) -> String {
    let path = repository().unwrap().join(name);
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
        let main = file(&format!("functions/{consumer}/src/main.rs"));
        // Breakers are shared by all consumers of the table.
        let breakers = if main.contains(".breaker(") { ", \"claimant-breaker#*\"" } else { "" };
        let condition = format!(
            "Resource: !GetAtt LockTable.Arn\nCondition:\n\
             ForAllValues:StringLike: {{\"dynamodb:LeadingKeys\": [\"{consumer}#*\", \"{consumer}~*\"{breakers}]}}\n\
             \"Null\": {{\"dynamodb:LeadingKeys\": \"false\"}}"
        );
        assert!(grants == 1 && text.contains(&condition), "{name} is not kept to the records of {consumer}:\n{text}");
        assert!(main.contains(&format!("(\"{consumer}\", ")), "{consumer} is not its consumer's name");
        fenced.push(name);
    }
    assert_eq!(fenced, CONSUMERS.map(|(role, _)| role));
}

/// The longest that a message of each function may wait for its process's death to be noticed, in seconds. A gateway's answer
/// may take 15 s, so the timeout of `payment` is long, and so is all that follows from it.
const BACK_AFTER_S: [(&str, &str, u64); 6] = [
    ("OrderQueue", "OrderConfirmationFunction", 60),
    ("PaymentQueue", "PaymentFunction", 180),
    ("GiftCardQueue", "GiftCardFunction", 60),
    ("LoyaltyQueue", "LoyaltyFunction", 60),
    ("AuditQueue", "AuditFunction", 60),
    ("InventoryQueue", "InventoryFunction", 60),
];

/// How long the lock table may be away before messages are dead-lettered, in seconds.
const OUTAGE_S: u64 = 600;

#[test]
fn messages_come_back_soon_and_outlast_leases_and_outages() {
    let template = file("template.yaml");
    let resources = resources(&template);
    let number = |resource: &str, name: &str| {
        let (_, text) = resources.iter().find(|(other, _)| *other == resource).expect(resource);
        text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse::<u64>().ok())
    };
    let usual = number("Function", "Timeout").expect("Globals has one");
    for (queue, function, back_after) in BACK_AFTER_S {
        let timeout = number(function, "Timeout").unwrap_or(usual);
        let visible = number(queue, "VisibilityTimeout").expect(queue);
        let receives = number(queue, "maxReceiveCount").expect(queue);
        assert!((timeout..=back_after).contains(&visible), "{queue}: {visible} s, {function}: {timeout} s");
        // L5: a lease ends a second after the deadline, and is honoured for the clock skew.
        assert!((receives - 1) * visible > timeout + 2, "{queue}: copies that only wait are dead-lettered");
        assert!(receives * visible >= OUTAGE_S, "{queue}: {receives} receives of {visible} s");
    }
}
