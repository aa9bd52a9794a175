//! What `template.yaml` grants, and how its times go together.

use claimant_servers::repository;
use serde_json::Value;

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

/// CloudFormation shortens the stack's part of a function's name to fit 64 characters: no pattern with the stack's whole name admits that
/// of a nested stack.
#[test]
fn no_role_may_do_something_by_a_name_that_cloudformation_gives() {
    let template = file("template.yaml");
    assert!(!template.contains("function:${AWS::StackName}"));
    for (name, text) in resources(&template).iter().filter(|(_, text)| text.contains("UpdateEventSourceMapping")) {
        assert!(text.contains("\nlambda:FunctionArn: !GetAtt PaymentFunction.Arn\n"), "{name}:\n{text}");
    }
}

/// A schedule that is still to come when a deployment ends the pauses switches the mapping on in the name of its role.
#[test]
fn what_a_schedule_needs_outlives_the_pauses() {
    let template = file("template.yaml");
    let resources = resources(&template);
    for (name, outlives) in [("PaymentPausePolicy", false), ("PaymentResumeRole", true), ("PaymentResumePolicy", true)]
    {
        let (_, text) = resources.iter().find(|(other, _)| *other == name).expect(name);
        assert_ne!(text.contains("\nCondition: PausesOnOutage\n"), outlives, "{name}:\n{text}");
    }
}

/// SES asks for the permission on the identity's default configuration set, too, which no request names.
#[test]
fn a_mail_may_have_a_configuration_set() {
    let template = file("template.yaml");
    let resources = resources(&template);
    let (_, role) = resources.iter().find(|(name, _)| *name == "OrderConfirmationRole").unwrap();
    let statement = role.split_once("Action: ses:SendEmail\n").unwrap().1.split_once("Condition:").unwrap().0;
    let of_account = "- !Sub arn:${AWS::Partition}:ses:${AWS::Region}:${AWS::AccountId}:";
    assert_eq!(statement, format!("Resource:\n{of_account}identity/*\n{of_account}configuration-set/*\n"));
}

/// A stack whose first creation failed leaves no tables of which the next one knows nothing.
#[test]
fn tables_are_kept_but_by_a_creation_that_failed() {
    let mut tables = 0;
    for name in ["template.yaml", "project/template.yaml.in", "consumer/resources.yaml.in"] {
        let name = if name.contains('/') { format!("crates/claimant-cli/templates/{name}") } else { name.to_owned() };
        let template = file(&name);
        for table in template.split("Type: AWS::DynamoDB::Table\n").skip(1) {
            let attributes: Vec<_> = table.split("Properties:\n").next().unwrap().lines().map(str::trim).collect();
            assert!(attributes.contains(&"DeletionPolicy: RetainExceptOnCreate"), "{name}: {attributes:?}");
            assert!(attributes.contains(&"UpdateReplacePolicy: Retain"), "{name}: {attributes:?}");
            tables += 1;
        }
    }
    assert_eq!(tables, 5 + 1 + 1);
}

/// What a second consumer of a function needs is in the page that adds it.
#[test]
fn the_page_of_routes_names_the_records_that_the_role_must_admit() {
    let page = file("docs/routes.md");
    let permissions = page.split_once("\n## Permissions\n").unwrap().1.split_once("\n## ").unwrap().0;
    for wanted in ["dynamodb:LeadingKeys", "\"order-refund#*\", \"order-refund~*\""] {
        assert!(permissions.contains(wanted), "{wanted}");
    }
}

/// A pause of the intake asks for the mappings whatever the check of them is.
#[test]
fn the_look_at_mappings_is_needed_for_pauses_too() {
    let page = file("docs/deploying.md");
    let row = page.lines().find(|line| line.starts_with("| `lambda:ListEventSourceMappings` |")).unwrap();
    assert!(row.contains("`CLAIMANT_MAPPING_CHECK=off`") && row.contains("`CLAIMANT_RESUME_ROLE_ARN`"), "{row}");
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

/// Returns a number that stands in a resource by itself.
fn number(resources: &[(&str, String)], resource: &str, name: &str) -> Option<u64> {
    let (_, text) = resources.iter().find(|(other, _)| *other == resource).expect(resource);
    text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": ")?.parse().ok())
}

/// How long the lock table may be away before messages are dead-lettered, in seconds.
const OUTAGE_S: u64 = 600;

#[test]
fn messages_come_back_soon_and_outlast_leases_and_outages() {
    let template = file("template.yaml");
    let resources = resources(&template);
    let number = |resource: &str, name: &str| number(&resources, resource, name);
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

/// A message that ends its process each time does so once in each visibility timeout, and what other batches do between two of its
/// failures is fine.
#[test]
fn the_alarm_on_errors_sees_a_message_that_fails_its_invocation_each_time() {
    /// How long a poll may wait for it then.
    const POLL_S: u64 = 20;
    let (template, alarms) = (file("template.yaml"), file("infra/alarms.yaml"));
    let (resources, alarms) = (resources(&template), resources(&alarms));
    let of_alarm = |name: &str| number(&alarms, "FunctionErrorsAlarm", name).expect(name);
    assert_eq!(of_alarm("DatapointsToAlarm"), 2, "one process may die");
    for (queue, _, _) in BACK_AFTER_S {
        let visible = number(&resources, queue, "VisibilityTimeout").expect(queue);
        let periods_apart = (visible + POLL_S).div_ceil(of_alarm("Period"));
        assert!(
            periods_apart < of_alarm("EvaluationPeriods"),
            "{queue}: two failures are {periods_apart} minutes apart"
        );
    }
}

/// A second stack of alarms, for another consumer of the function, does not watch its queue and its errors twice.
#[test]
fn alarms_of_a_further_consumer_are_those_that_name_one() {
    let alarms = file("infra/alarms.yaml");
    for (name, text) in resources(&alarms).iter().filter(|(_, text)| text.contains("Type: AWS::CloudWatch::Alarm")) {
        let of_consumer = text.contains("Value: !Ref Consumer}");
        assert_ne!(text.contains("\nCondition: OfFunctionToo\n"), of_consumer, "{name}");
    }
    assert!(alarms.contains("OfFunctionToo: !Equals [!Ref ConsumerOnly, \"no\"]"));
}

/// A dashboard's name is there once in an account, and each consumer of a function with routes has one.
#[test]
fn dashboards_of_one_function_have_names_of_their_own() {
    assert!(file("infra/dashboard.yaml").contains("DashboardName: !Sub ${FunctionName}-${Consumer}\n"));
}

/// At night the text of an alarm is all there is: its commands name their function, say how they act on one queue of
/// it alone, and that they need its stack.
#[test]
fn the_commands_in_alarms_are_whole() {
    /// What CloudWatch takes.
    const LENGTH_MAX: usize = 1_024;
    let alarms = file("infra/alarms.yaml");
    let longest = [("${Consumer}", 40), ("${FunctionName}", 64), ("${QueueName}", 80), ("${Consequence}", 150)];
    let (mut commands, mut with_stack) = (0, 0);
    for (name, text) in resources(&alarms).iter().filter(|(_, text)| text.contains("AlarmDescription: !Sub >-")) {
        let text = text.split_once("AlarmDescription: !Sub >-").unwrap().1;
        let end = ["\nNamespace:", "\nMetrics:"].iter().filter_map(|key| text.find(key)).min().unwrap();
        let words: Vec<_> = text[..end].split_whitespace().collect();
        let whole =
            longest.iter().fold(words.join(" "), |text, (word, length)| text.replace(word, &"x".repeat(*length)));
        assert!(whole.len() <= LENGTH_MAX, "{name}: {}", whole.len());
        for at in (2..words.len()).filter(|at| words[at - 2].ends_with("claimant")) {
            if ["pause", "resume"].contains(&words[at - 1]) {
                let argument = words[at..].iter().find(|word| !word.starts_with("--")).expect("it goes on");
                assert!(argument.starts_with("${FunctionName}"), "claimant {} {argument}", words[at - 1]);
                let names_queue =
                    words[at + 1] == "--queue" || words[at + 1..].starts_with(&["with", "the", "--queue"]);
                assert!(words[at] == "--dry-run" || names_queue, "{name}: no queue");
                commands += 1;
            }
        }
        let has_commands = words.iter().any(|word| word.ends_with("claimant"));
        let says = "Add to each command --stack and the name of the stack that has the function.";
        assert_eq!(words.join(" ").ends_with(says), has_commands, "{name}");
        with_stack += usize::from(has_commands);
    }
    assert!(commands >= 5 && with_stack == 6, "{commands} {with_stack}");
}

/// One from the fourth on costs: each is made only where the stack's parameter asks for it.
#[test]
fn dashboards_are_made_where_they_are_asked_for() {
    let texts = ["template.yaml", "crates/claimant-cli/templates/consumer/resources.yaml.in", "docs/routes.md"];
    for name in texts {
        let text = file(name);
        for before in text.split("TemplateURL: infra/dashboard.yaml").collect::<Vec<_>>().split_last().unwrap().1 {
            let resource = before.rsplit("Type: AWS::CloudFormation::Stack\n").next().unwrap().trim();
            let condition = resource.strip_prefix("Condition: Has").and_then(|rest| rest.split_once("Dashboard"));
            assert!(condition.is_some(), "{name}: {resource}");
        }
    }
}

/// A metric of zero is not written, so what looks at metrics has to take a missing one for zero.
#[test]
fn alarms_and_the_dashboard_take_a_missing_metric_for_zero() {
    let (alarms, observe) = (file("infra/alarms.yaml"), file("crates/claimant-lambda/src/observe.rs"));
    let mut watched = Vec::new();
    for (name, text) in resources(&alarms).iter().filter(|(_, text)| text.contains("Type: AWS::CloudWatch::Alarm")) {
        assert!(text.contains("\nTreatMissingData: notBreaching\n"), "{name}");
        let expression = text.lines().find_map(|line| line.strip_prefix("Expression: ")).unwrap_or_default();
        for metric in text.split("\nNamespace: claimant\nMetricName: ").skip(1) {
            let metric = metric.lines().next().unwrap();
            let is_one = [" = ", ","].iter().any(|end| observe.contains(&format!("\n        {metric}{end}")));
            assert!(is_one, "{name}: claimant has no metric {metric}");
            watched.push(format!("{name} {metric}"));
            if expression.is_empty() {
                continue;
            }
            assert!(text.contains(&format!("- Id: {metric}\n")), "{name}: {metric}");
            // What is not there has no value in an expression, unless it is filled. Every batch has received something.
            let filled = expression.matches(&format!("FILL({metric}, 0)")).count();
            let is_filled = filled == expression.matches(metric).count();
            assert!(expression.contains(metric) && (is_filled || metric == "received"), "{name}: {expression}");
        }
    }
    watched.sort();
    let nothing_succeeds =
        ["completed", "duplicate", "received"].map(|metric| format!("NothingSucceedsAlarm {metric}"));
    assert_eq!(
        watched,
        [&["BreakerAlarm breaker_open".to_owned()][..], &nothing_succeeds, &["ParkedAlarm parked".to_owned()]].concat()
    );

    let dashboard = file("infra/dashboard.yaml");
    let body: Value = serde_json::from_str(dashboard.split_once("DashboardBody: !Sub |").unwrap().1).unwrap();
    let (mut filled, mut bare) = (0, 0);
    for widget in body["widgets"].as_array().unwrap() {
        let metrics = widget["properties"]["metrics"].as_array().unwrap();
        let expressions = || metrics.iter().filter_map(|metric| metric[0]["expression"].as_str());
        for metric in metrics.iter().filter(|metric| metric[0] == "claimant") {
            let (name, id) = (&metric[1], metric[6]["id"].as_str());
            for expression in id.into_iter().flat_map(|id| expressions().filter(move |text| text.contains(id))) {
                let is_filled = expression.contains(&format!("FILL({}, 0)", id.unwrap()));
                // Every batch has received something.
                assert!(is_filled || name == "received", "{name} in {expression}");
                filled += usize::from(is_filled);
            }
            bare += usize::from(id.is_none());
            // What is stacked on a gap stands nowhere.
            assert!(id.is_some() || widget["properties"]["stacked"] != true, "{name}");
        }
    }
    assert!(filled == 5 && bare > 10, "{filled} {bare}");
}

/// The names that CloudFormation gives to what a template does not name: of a stack `shop`.
fn named(logical: &str, fifo: bool) -> String {
    format!("shop-{logical}-1A2B3C4D5E6F{}", if fifo { ".fifo" } else { "" })
}

/// Whether a pattern of a policy, with `*` for any text, admits this.
fn admits(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else { return pattern == name };
    name.strip_prefix(start).is_some_and(|name| (0..=name.len()).any(|at| admits(rest, &name[at..])))
}

/// The policies in the book admit what the template makes, in a stack that is called as theirs.
#[test]
fn the_rights_of_the_console_fit_a_stack_of_the_template() {
    let book = file("docs/commands.md");
    let policies = book.split_once("### The least rights").unwrap().1.split("```json").skip(1).take(2);
    let policies = policies.map(|policy| policy.split("```").next().unwrap());
    let statements: Vec<Value> = policies
        .flat_map(|policy| serde_json::from_str::<Value>(policy).unwrap()["Statement"].as_array().unwrap().clone())
        .collect();
    let may = |action: &str, name: &str| {
        let with = statements.iter().filter(|s| s["Action"].as_array().unwrap().contains(&action.into()));
        with.filter_map(|s| s["Resource"].as_str()?.rsplit_once(':')).any(|(_, pattern)| admits(pattern, name))
    };
    let template = file("template.yaml");
    let mut refused = Vec::new();
    for (logical, text) in resources(&template) {
        let name = named(logical, text.contains("FifoQueue: true"));
        let actions: &[&str] = match text.lines().next().unwrap_or_default() {
            "Type: AWS::SQS::Queue" if template.contains(&format!("deadLetterTargetArn: !GetAtt {logical}.Arn")) => {
                &["sqs:ReceiveMessage", "sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes"]
            }
            "Type: AWS::SQS::Queue" => &["sqs:GetQueueAttributes", "sqs:ListDeadLetterSourceQueues", "sqs:SendMessage"],
            "Type: AWS::Logs::LogGroup" => &["logs:FilterLogEvents"],
            _ => &[],
        };
        refused.extend(actions.iter().filter(|action| !may(action, &name)).map(|action| format!("{action} {name}")));
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
