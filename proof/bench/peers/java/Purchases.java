import com.amazonaws.services.lambda.runtime.events.SQSEvent.SQSMessage;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import software.amazon.lambda.powertools.idempotency.Idempotent;
import software.amazon.lambda.powertools.sqs.SqsMessageHandler;

/** The handler of one message. Powertools makes it anew for each batch. */
public final class Purchases implements SqsMessageHandler<Object> {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long LOOK_MS = 5;

    /** How many handlers have run in this batch. */
    static int ran = 0;

    @Override
    @Idempotent
    public String process(SQSMessage message) {
        try {
            JsonNode order = JSON.readTree(message.getBody());
            ran += 1;
            if (order.has("told")) follow(order.get("told").asText());
            return "done";
        } catch (IOException | InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Says that the handler has begun, and blocks until it is told how it ends: see proof/bench/src/contestant/told.rs. */
    private static void follow(String name) throws IOException, InterruptedException {
        Contestant.say(JSON.createObjectNode().put("began", name));
        Path told = Path.of(System.getenv("CLAIMANT_BENCH_TOLD"), name);
        while (true) {
            String how = Files.exists(told) ? Files.readString(told) : "";
            if (how.equals("complete")) return;
            if (how.equals("fail")) throw new IllegalStateException("the handler was told to fail");
            Thread.sleep(LOOK_MS);
        }
    }
}
