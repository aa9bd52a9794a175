//! The functions of stacks, and what else of them findings can be about.

use serde_json::{Value, json};

use super::answers::{Account, Asker, Refused, Service, pages, text, texts};

/// Resources of a stack at most, with those of what is nested in it.
const RESOURCES_MAX: usize = 2_000;

/// The states of a resource that a stack has not, or has no more, or soon: one that failed to be made can have the name of another stack's.
const ABSENT: [&str; 4] = ["CREATE_FAILED", "DELETE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_SKIPPED"];

pub(super) const FUNCTION: &str = "AWS::Lambda::Function";
const STACK: &str = "AWS::CloudFormation::Stack";

/// What else findings can be about.
pub(super) const MAPPING: &str = "AWS::Lambda::EventSourceMapping";
pub(super) const QUEUE: &str = "AWS::SQS::Queue";
pub(super) const TABLES: [&str; 2] = ["AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"];

/// A function or a queue of a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StackResource {
    /// Its name in the template.
    pub logical_id: String,
    /// A function's name; a queue's URL.
    pub id: String,
}

/// What a stack has, without what those have that are nested in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StackParts {
    /// Its functions.
    pub functions: Vec<StackResource>,
    /// Its queues.
    pub queues: Vec<StackResource>,
    /// The names of the stacks that are nested in it.
    pub nested: Vec<String>,
}

/// Asks CloudFormation for the functions and queues of a stack.
///
/// # Errors
/// There is no such stack, it may not be asked about, or no answer came.
pub async fn parts_of_stack<A: Account>(account: &A, stack: &str) -> Result<StackParts, Refused> {
    let resources = resources(account, stack).await?;
    let of_type = |kind: &'static str| resources.iter().filter(move |one| text(one, "ResourceType") == Some(kind));
    let part = |one: &Value| {
        let id = id(one)?.to_owned();
        Some(StackResource { logical_id: text(one, "LogicalResourceId").unwrap_or(&id).to_owned(), id })
    };
    Ok(StackParts {
        functions: of_type(FUNCTION).filter_map(part).collect(),
        queues: of_type(QUEUE).filter_map(part).collect(),
        nested: of_type(STACK).filter_map(id).map(|arn| name(arn).to_owned()).collect(),
    })
}

/// The name of a stack, also of one that is known by its ARN: `…:stack/shop-Inner-1ABC/8ef8…`.
pub(super) fn name(stack: &str) -> &str {
    stack.split('/').nth(1).unwrap_or(stack)
}

/// A resource of a stack that findings can be about.
pub(super) struct Resource {
    /// Its stack, by its name or its ARN.
    pub(super) stack: String,
    /// Its name in the template.
    pub(super) logical_id: String,
    /// Its name; a queue's URL, a mapping's UUID.
    pub(super) id: String,
    /// Its type.
    pub(super) kind: String,
}

/// The resources of a stack, and of those nested in it, that findings can be about.
pub(super) async fn resources_of<A: Account>(asker: &Asker<'_, A>, stack: &str) -> Result<Vec<Resource>, Refused> {
    let (mut stacks, mut found, mut seen) = (vec![stack.to_owned()], Vec::new(), 0);
    while let Some(stack) = stacks.pop() {
        for resource in resources(asker, &stack).await? {
            seen += 1;
            let Some(id) = id(&resource) else { continue };
            match text(&resource, "ResourceType") {
                Some(STACK) if seen >= RESOURCES_MAX => {
                    asker.note(format!("the stack {id}: there are {RESOURCES_MAX} resources before it"));
                }
                Some(STACK) => stacks.push(id.to_owned()),
                Some(kind) if [FUNCTION, MAPPING, QUEUE].contains(&kind) || TABLES.contains(&kind) => {
                    found.push(Resource {
                        stack: stack.clone(),
                        logical_id: text(&resource, "LogicalResourceId").unwrap_or_default().to_owned(),
                        id: id.to_owned(),
                        kind: kind.to_owned(),
                    })
                }
                _ => {}
            }
        }
    }
    Ok(found)
}

/// What a stack has.
async fn resources<A: Account>(account: &A, stack: &str) -> Result<Vec<Value>, Refused> {
    let input = json!({ "StackName": stack });
    let pages = pages(account, Service::CloudFormation, "ListStackResources", (input, "NextToken")).await?;
    let mut resources = texts(&pages, "StackResourceSummaries");
    resources.retain(|one| text(one, "ResourceStatus").is_none_or(|state| !ABSENT.contains(&state)));
    Ok(resources)
}

/// Its name or its ARN, once it has one.
fn id(resource: &Value) -> Option<&str> {
    text(resource, "PhysicalResourceId").filter(|id| !id.is_empty())
}
