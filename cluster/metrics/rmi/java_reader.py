"""Java source of the bulk reader, which the gateway JVM compiles.

A broker has hundreds of MBeans and JMX reads them one call at a time. From Python, each call would cost several more
between Python and the JVM. Here one Py4J call reads a whole broker.
"""

from __future__ import annotations

CLASS_NAME = "BulkReader"

# Compiled by Janino, which supports no lambdas and needs no generics.
SOURCE = r"""
import java.io.IOException;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import javax.management.*;
import javax.management.remote.*;

public class BulkReader {
    private final JMXServiceURL url;
    private final Map environment;
    private final Object tlsRegistry;
    private JMXConnector connector;
    private MBeanServerConnection connection;

    /** tlsRegistry: the socket factory for a registry that speaks TLS; null: JMX without TLS. */
    public BulkReader(String url, Map environment, Object tlsRegistry) throws Exception {
        this.url = new JMXServiceURL(url);
        this.environment = environment;
        this.tlsRegistry = tlsRegistry;
    }

    /** One line per value: index of the request, epoch ms of the reading, value, and for patterns the name. */
    public String read(String requests, long budgetMs) throws Exception {
        long start = System.nanoTime();
        long deadline = start + budgetMs * 1000000L;
        boolean fresh = connection == null;
        try {
            return readAll(requests, deadline);
        } catch (IOException broken) {
            connection = null;
            connector = null;
            // A broker that restarted leaves a connection that fails at once; one that hangs has used up its time.
            if (fresh || System.nanoTime() - start > (deadline - start) / 2) throw broken;
        }
        try {
            return readAll(requests, deadline);
        } catch (IOException broken) {
            connection = null;
            connector = null;
            throw broken;
        }
    }

    public void close() {
        JMXConnector open = connector;
        connection = null;
        connector = null;
        try {
            if (open != null) open.close();
        } catch (IOException gone) {
            // The broker is gone, and with it the connection.
        }
    }

    private String readAll(String requests, long deadline) throws Exception {
        if (connection == null) {
            connector = connect();
            connection = connector.getMBeanServerConnection();
        }
        StringBuilder out = new StringBuilder(requests.length());
        String[] lines = requests.split("\n");
        for (int i = 0; i < lines.length; i++) {
            String[] parts = lines[i].split("\t");
            ObjectName name = new ObjectName(parts[0]);
            if (!name.isPattern()) {
                value(out, i, name, parts[1], false, deadline);
                continue;
            }
            Iterator names = connection.queryNames(name, null).iterator();
            while (names.hasNext()) value(out, i, (ObjectName) names.next(), parts[1], true, deadline);
        }
        return out.toString();
    }

    private JMXConnector connect() throws IOException {
        try {
            return JMXConnectorFactory.connect(url, environment);
        } catch (IOException plain) {
            if (tlsRegistry == null) throw plain;
        }
        // com.sun.management.jmxremote.registry.ssl: the registry itself may speak TLS or not, whatever the rest does.
        Map tls = new HashMap(environment);
        tls.put("com.sun.jndi.rmi.factory.socket", tlsRegistry);
        return JMXConnectorFactory.connect(url, tls);
    }

    private void value(StringBuilder out, int index, ObjectName name, String attribute, boolean named, long deadline)
            throws Exception {
        if (System.nanoTime() > deadline) throw new IOException("time is up");
        Object value;
        try {
            value = connection.getAttribute(name, attribute);
        } catch (InstanceNotFoundException gone) {
            return;
        } catch (AttributeNotFoundException gone) {
            return;
        } catch (MBeanException failed) {
            return;
        } catch (RuntimeMBeanException failed) {
            return;
        }
        out.append(index).append('\t').append(System.currentTimeMillis()).append('\t').append(value);
        if (named) out.append('\t').append(name.getCanonicalName());
        out.append('\n');
    }
}
"""
