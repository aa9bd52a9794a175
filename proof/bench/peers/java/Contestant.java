// Powertools for AWS Lambda (Java) 1.15: SQS batch and idempotency, put together as its documentation shows, and woven
// by AspectJ. It deletes what has succeeded by itself when a part of a batch fails: here, from a stand-in of SQS.
//
// One line of JSON in, one out, for each batch: see proof/bench/src/contestant/mod.rs.

import com.amazonaws.services.lambda.runtime.ClientContext;
import com.amazonaws.services.lambda.runtime.CognitoIdentity;
import com.amazonaws.services.lambda.runtime.Context;
import com.amazonaws.services.lambda.runtime.LambdaLogger;
import com.amazonaws.services.lambda.runtime.events.SQSEvent;
import com.amazonaws.services.lambda.runtime.events.SQSEvent.SQSMessage;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import software.amazon.awssdk.core.SdkSystemSetting;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.dynamodb.DynamoDbClient;
import software.amazon.awssdk.services.sqs.SqsClient;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchRequest;
import software.amazon.awssdk.services.sqs.model.DeleteMessageBatchResponse;
import software.amazon.awssdk.services.sqs.model.GetQueueUrlRequest;
import software.amazon.awssdk.services.sqs.model.GetQueueUrlResponse;
import software.amazon.lambda.powertools.idempotency.Idempotency;
import software.amazon.lambda.powertools.idempotency.IdempotencyConfig;
import software.amazon.lambda.powertools.idempotency.persistence.DynamoDBPersistenceStore;
import software.amazon.lambda.powertools.sqs.SQSBatchProcessingException;
import software.amazon.lambda.powertools.sqs.SqsUtils;

public final class Contestant {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> PACKAGES = List.of("powertools-idempotency", "powertools-sqs", "dynamodb");

    /** What Powertools asks of SQS. */
    private static final class Queue implements SqsClient {
        private final Set<String> deleted = new HashSet<>();

        @Override
        public GetQueueUrlResponse getQueueUrl(GetQueueUrlRequest request) {
            return GetQueueUrlResponse.builder().queueUrl("https://sqs.us-east-1.amazonaws.com/0/orders").build();
        }

        @Override
        public DeleteMessageBatchResponse deleteMessageBatch(DeleteMessageBatchRequest request) {
            request.entries().forEach(entry -> deleted.add(entry.receiptHandle()));
            return DeleteMessageBatchResponse.builder().build();
        }

        @Override
        public String serviceName() {
            return "sqs";
        }

        @Override
        public void close() {}
    }

    /** The part of Lambda's context that Powertools reads. */
    private static final class Invocation implements Context {
        private final long endNanos;

        Invocation(long remainingMs) {
            endNanos = System.nanoTime() + remainingMs * 1_000_000;
        }

        @Override
        public int getRemainingTimeInMillis() {
            return (int) Math.max(0, (endNanos - System.nanoTime()) / 1_000_000);
        }

        @Override
        public String getAwsRequestId() {
            return "";
        }

        @Override
        public String getLogGroupName() {
            return "";
        }

        @Override
        public String getLogStreamName() {
            return "";
        }

        @Override
        public String getFunctionName() {
            return System.getenv("AWS_LAMBDA_FUNCTION_NAME");
        }

        @Override
        public String getFunctionVersion() {
            return "";
        }

        @Override
        public String getInvokedFunctionArn() {
            return "";
        }

        @Override
        public CognitoIdentity getIdentity() {
            return null;
        }

        @Override
        public ClientContext getClientContext() {
            return null;
        }

        @Override
        public int getMemoryLimitInMB() {
            return 1_769;
        }

        @Override
        public LambdaLogger getLogger() {
            return null;
        }
    }

    private static SQSEvent event(JsonNode json) {
        List<SQSMessage> messages = new ArrayList<>();
        for (JsonNode record : json.get("Records")) {
            SQSMessage message = new SQSMessage();
            message.setMessageId(record.get("messageId").asText());
            message.setReceiptHandle(record.get("receiptHandle").asText());
            message.setBody(record.get("body").asText());
            message.setEventSource(record.get("eventSource").asText());
            message.setEventSourceArn(record.get("eventSourceARN").asText());
            message.setAwsRegion(record.get("awsRegion").asText());
            Map<String, String> attributes = new HashMap<>();
            record.get("attributes").fields().forEachRemaining(a -> attributes.put(a.getKey(), a.getValue().asText()));
            message.setAttributes(attributes);
            message.setMessageAttributes(new HashMap<>());
            messages.add(message);
        }
        SQSEvent event = new SQSEvent();
        event.setRecords(messages);
        return event;
    }

    static void say(JsonNode answer) {
        System.out.println("claimant-bench " + answer);
        System.out.flush();
    }

    /** The versions of the packages, by the names of their files. */
    private static String versions() {
        List<String> versions = new ArrayList<>();
        for (String file : System.getProperty("java.class.path").split(java.io.File.pathSeparator)) {
            String name = Path.of(file).getFileName().toString();
            for (String prefix : PACKAGES) {
                if (name.matches(prefix + "-[0-9.]+\\.jar")) {
                    versions.add(prefix + " " + name.substring(prefix.length() + 1, name.length() - ".jar".length()));
                }
            }
        }
        versions.sort(null);
        versions.add("Java " + System.getProperty("java.version"));
        return String.join(", ", versions);
    }

    public static void main(String[] arguments) throws Exception {
        DynamoDbClient client = DynamoDbClient.builder()
                .httpClient(UrlConnectionHttpClient.builder().build())
                .region(Region.of(System.getenv(SdkSystemSetting.AWS_REGION.environmentVariable())))
                .endpointOverride(URI.create(System.getenv("AWS_ENDPOINT_URL_DYNAMODB")))
                .build();
        Idempotency.config()
                .withPersistenceStore(DynamoDBPersistenceStore.builder()
                        .withTableName(System.getenv("CLAIMANT_BENCH_TABLE"))
                        .withDynamoDbClient(client)
                        .build())
                .withConfig(IdempotencyConfig.builder()
                        .withEventKeyJMESPath("powertools_json(body).order_id")
                        .build())
                .configure();
        Queue queue = new Queue();
        SqsUtils.overrideSqsClient(queue);
        var system = (com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        say(JSON.createObjectNode().put("ready", versions()));
        var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            JsonNode task = JSON.readTree(line);
            SQSEvent event = event(task.get("event"));
            Context context = new Invocation(task.get("remaining_ms").asLong());
            Purchases.ran = 0;
            queue.deleted.clear();
            boolean ended = true;
            long cpu = system.getProcessCpuTime();
            long wall = System.nanoTime();
            try {
                Idempotency.registerLambdaContext(context);
                SqsUtils.batchProcessor(event, Purchases.class);
            } catch (SQSBatchProcessingException e) {
                ended = false;
                System.err.println(e.getExceptions());
            }
            wall = System.nanoTime() - wall;
            cpu = system.getProcessCpuTime() - cpu;
            ObjectNode answer = JSON.createObjectNode().put("wall_ns", wall).put("cpu_ns", cpu).put("ran", Purchases.ran);
            ArrayNode failed = answer.putArray("failed");
            for (SQSMessage message : event.getRecords()) {
                if (!ended && !queue.deleted.contains(message.getReceiptHandle())) failed.add(message.getMessageId());
            }
            say(answer);
        }
    }

    private Contestant() {}
}
