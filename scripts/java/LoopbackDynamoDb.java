import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.Field;
import org.eclipse.jetty.server.Connector;
import org.eclipse.jetty.server.Server;
import org.eclipse.jetty.server.ServerConnector;
import software.amazon.dynamodb.services.local.main.ServerRunner;
import software.amazon.dynamodb.services.local.server.DynamoDBProxyServer;

/**
 * DynamoDB Local on 127.0.0.1. Its own command line has no option for the address and binds every interface, so the
 * connector's host is set here, between its construction and its start.
 *
 * <p>Usage: LoopbackDynamoDb PORT. Port 0 takes a free one; the line "listening on 127.0.0.1:PORT" names it.
 */
public final class LoopbackDynamoDb {
    /** ServerRunner refuses port 0, so it is given this one, and the connector gets the real one before it binds. */
    private static final String UNUSED_PORT = "8000";

    public static void main(String[] args) throws Exception {
        int port = args.length == 1 && args[0].matches("\\d{1,5}") ? Integer.parseInt(args[0]) : -1;
        if (port < 0 || port > 65535) {
            System.err.println("error: the one argument is a port, from 0 (a free one) to 65535");
            System.exit(2);
        }
        DynamoDBProxyServer proxy = newProxy();
        ServerConnector connector = connectorOf(proxy);
        connector.setHost("127.0.0.1");
        connector.setPort(port);

        // Nothing may outlive the test run that asked for it, however that run ends.
        ProcessHandle.current().parent().ifPresent(parent -> parent.onExit().thenRun(() -> System.exit(0)));

        try {
            proxy.start();
        } catch (IOException e) {
            System.err.println("error: " + e.getMessage() + ": end what holds that port, or give another");
            System.exit(1);
        }
        System.out.println("listening on 127.0.0.1:" + connector.getLocalPort());
        proxy.join();
    }

    /** The server, not yet bound, made without the banner that would name the wrong port. */
    private static DynamoDBProxyServer newProxy() throws Exception {
        PrintStream out = System.out;
        System.setOut(new PrintStream(OutputStream.nullOutputStream()));
        try {
            return ServerRunner.createServerFromCommandLineArgs(
                    new String[] {"-inMemory", "-sharedDb", "-disableTelemetry", "-port", UNUSED_PORT});
        } finally {
            System.setOut(out);
        }
    }

    /** The one connector of the Jetty server, which DynamoDB Local keeps private. */
    private static ServerConnector connectorOf(DynamoDBProxyServer proxy) throws ReflectiveOperationException {
        Field field = DynamoDBProxyServer.class.getDeclaredField("server");
        field.setAccessible(true);
        Connector[] connectors = ((Server) field.get(proxy)).getConnectors();
        if (connectors.length != 1) {
            throw new IllegalStateException(
                    "DynamoDB Local has " + connectors.length + " connectors; this launcher knows how to bind one");
        }
        return (ServerConnector) connectors[0];
    }

    private LoopbackDynamoDb() {}
}
