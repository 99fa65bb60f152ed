"""One broker's answer as jmx_exporter gives it under the configurations that are in use.

Broker 1 leads orders-0 and Pay.v2-3 and follows orders-1, from broker 2. Each text has the same values, as far as its
configuration exports them, in the names, labels and order that its rules make of Kafka's MBeans.
"""

# ruff: noqa: E501 - lines as the exporter writes them

from __future__ import annotations

JVM = "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.7E9\n"

# examples/kafka-2_0_0.yml and kafka-kraft-3_0_0.yml of jmx_exporter, and Strimzi's: lower case names, labels as they are.
# The fetcher's bytes have three keys, and the rule for two takes the thread into the name of a label.
EXAMPLE = (
    JVM
    + """# HELP kafka_log_log_logendoffset Attribute exposed for management kafka.log:name=LogEndOffset,type=Log,attribute=Value
# TYPE kafka_log_log_logendoffset gauge
kafka_log_log_logendoffset{partition="0",topic="orders"} 900.0
kafka_log_log_logendoffset{partition="3",topic="Pay.v2"} 30.0
kafka_log_log_logendoffset{partition="1",topic="orders"} 77.0
# TYPE kafka_log_log_logstartoffset gauge
kafka_log_log_logstartoffset{partition="0",topic="orders"} 100.0
# TYPE kafka_log_log_size gauge
kafka_log_log_size{partition="0",topic="orders"} 5.0E8
# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 7.0E9
kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 4.0E9
kafka_server_brokertopicmetrics_bytesin_total{topic="Pay.v2"} 3.0E9
# TYPE kafka_server_brokertopicmetrics_messagesin_total counter
kafka_server_brokertopicmetrics_messagesin_total 70.0
kafka_server_brokertopicmetrics_messagesin_total{topic="orders"} 40.0
kafka_server_brokertopicmetrics_messagesin_total{topic="Pay.v2"} 30.0
# TYPE kafka_server_brokertopicmetrics_replicationbytesin_total counter
kafka_server_brokertopicmetrics_replicationbytesin_total 123.0
# TYPE kafka_server_fetcherlagmetrics_consumerlag gauge
kafka_server_fetcherlagmetrics_consumerlag{clientId="ReplicaFetcherThread-0-2",partition="1",topic="orders"} 12.0
# TYPE kafka_server_fetcherstats_bytes_total counter
kafka_server_fetcherstats_bytes_total{brokerPort="9092",clientId_ReplicaFetcherThread_0_2_brokerHost="h2"} 555.0
# TYPE kafka_server_fetcherstats_requests_total counter
kafka_server_fetcherstats_requests_total{brokerPort="9092",clientId_ReplicaFetcherThread_0_2_brokerHost="h2"} 9.0
# TYPE kafka_server_replicamanager_underreplicatedpartitions gauge
kafka_server_replicamanager_underreplicatedpartitions 1.0
# TYPE kafka_server_replicamanager_partitioncount gauge
kafka_server_replicamanager_partitioncount 3.0
"""
)

# The same with the rule of the KRaft example for MBeans of a type alone: the quotas are there too.
KRAFT = (
    EXAMPLE
    + """# TYPE kafka_server_leaderreplication_byte_rate gauge
kafka_server_leaderreplication_byte_rate 1500000.5
"""
)

# Without rules: the type is in the name, every other key in a label, and every attribute has a metric.
NO_RULES = """# TYPE java_lang_Runtime_StartTime untyped
java_lang_Runtime_StartTime 1.7E12
# TYPE kafka_log_Log_Value untyped
kafka_log_Log_Value{name="LogEndOffset",topic="orders",partition="0",} 900.0
kafka_log_Log_Value{name="LogEndOffset",topic="Pay.v2",partition="3",} 30.0
kafka_log_Log_Value{name="LogStartOffset",topic="orders",partition="0",} 100.0
kafka_log_Log_Value{name="Size",topic="orders",partition="0",} 5.0E8
kafka_log_Log_Value{name="NumLogSegments",topic="orders",partition="0",} 3.0
# TYPE kafka_server_BrokerTopicMetrics_Count untyped
kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",} 7.0E9
kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="orders",} 4.0E9
kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="Pay.v2",} 3.0E9
kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",} 70.0
kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",topic="orders",} 40.0
kafka_server_BrokerTopicMetrics_Count{name="MessagesInPerSec",topic="Pay.v2",} 30.0
kafka_server_BrokerTopicMetrics_Count{name="ReplicationBytesInPerSec",} 123.0
# TYPE kafka_server_BrokerTopicMetrics_OneMinuteRate untyped
kafka_server_BrokerTopicMetrics_OneMinuteRate{name="BytesInPerSec",topic="orders",} 41234.75
# TYPE kafka_server_BrokerTopicMetrics_MeanRate untyped
kafka_server_BrokerTopicMetrics_MeanRate{name="BytesInPerSec",topic="orders",} 1234.5
# TYPE kafka_server_FetcherLagMetrics_Value untyped
kafka_server_FetcherLagMetrics_Value{name="ConsumerLag",clientId="ReplicaFetcherThread-0-2",topic="orders",partition="1",} 12.0
# TYPE kafka_server_FetcherStats_Count untyped
kafka_server_FetcherStats_Count{name="BytesPerSec",clientId="ReplicaFetcherThread-0-2",brokerHost="h2",brokerPort="9092",} 555.0
kafka_server_FetcherStats_Count{name="RequestsPerSec",clientId="ReplicaFetcherThread-0-2",brokerHost="h2",brokerPort="9092",} 9.0
# TYPE kafka_server_ReplicaManager_Value untyped
kafka_server_ReplicaManager_Value{name="UnderReplicatedPartitions",} 1.0
kafka_server_ReplicaManager_Value{name="PartitionCount",} 3.0
# TYPE kafka_server_LeaderReplication_byte_rate untyped
kafka_server_LeaderReplication_byte_rate 1500000.5
"""
NO_RULES_LOWER = (
    "\n".join(
        line.partition("{")[0].lower() + line[len(line.partition("{")[0]) :] if line[:1] != "#" else line
        for line in NO_RULES.split("\n")
    )
    .replace("clientId=", "clientid=")
    .replace("brokerHost=", "brokerhost=")
    .replace("brokerPort=", "brokerport=")
)

# kafka_broker.yml of Confluent's jmx-monitoring-stacks: names and labels in lower case, counts without a type under the
# name that ends in persec, and a first rule so greedy that the lag's thread becomes part of the metric's name.
CONFLUENT = (
    JVM
    + """# TYPE kafka_log_log_logendoffset gauge
kafka_log_log_logendoffset{partition="0",topic="orders"} 900.0
kafka_log_log_logendoffset{partition="3",topic="Pay.v2"} 30.0
kafka_log_log_logstartoffset{partition="0",topic="orders"} 100.0
kafka_log_log_size{partition="0",topic="orders"} 5.0E8
# TYPE kafka_server_fetcherlagmetrics_consumerlag_clientid_replicafetcherthread_0_2 gauge
kafka_server_fetcherlagmetrics_consumerlag_clientid_replicafetcherthread_0_2{partition="1",topic="orders"} 12.0
# TYPE kafka_server_brokertopicmetrics_bytesinpersec untyped
kafka_server_brokertopicmetrics_bytesinpersec 7.0E9
kafka_server_brokertopicmetrics_bytesinpersec{topic="orders"} 4.0E9
kafka_server_brokertopicmetrics_bytesinpersec{topic="Pay.v2"} 3.0E9
# TYPE kafka_server_brokertopicmetrics_messagesinpersec untyped
kafka_server_brokertopicmetrics_messagesinpersec 70.0
kafka_server_brokertopicmetrics_messagesinpersec{topic="orders"} 40.0
kafka_server_brokertopicmetrics_messagesinpersec{topic="Pay.v2"} 30.0
# TYPE kafka_server_brokertopicmetrics_replicationbytesinpersec untyped
kafka_server_brokertopicmetrics_replicationbytesinpersec 123.0
# TYPE kafka_server_fetcherstats_bytespersec_clientid_replicafetcherthread_0_2 untyped
kafka_server_fetcherstats_bytespersec_clientid_replicafetcherthread_0_2{brokerhost="h2",brokerport="9092"} 555.0
# TYPE kafka_server_replicamanager_underreplicatedpartitions untyped
kafka_server_replicamanager_underreplicatedpartitions 1.0
kafka_server_replicamanager_partitioncount 3.0
"""
)

# Bitnami's chart: the attribute in the name, "total" in the middle of a broker's own, and of a lag everything in the
# name, the topic with what it has left there.
BITNAMI = """# TYPE java_lang_runtime_starttime untyped
java_lang_runtime_starttime 1.7E12
# TYPE kafka_log_log_logendoffset untyped
kafka_log_log_logendoffset{partition="0",topic="orders"} 900.0
kafka_log_log_logendoffset{partition="3",topic="Pay.v2"} 30.0
kafka_log_log_logstartoffset{partition="0",topic="orders"} 100.0
kafka_log_log_size{partition="0",topic="orders"} 5.0E8
# TYPE kafka_server_brokertopicmetrics_bytesinpersec_count untyped
kafka_server_brokertopicmetrics_bytesinpersec_count{topic="orders"} 4.0E9
kafka_server_brokertopicmetrics_bytesinpersec_count{topic="Pay.v2"} 3.0E9
kafka_server_brokertopicmetrics_bytesinpersec_oneminuterate{topic="orders"} 41234.75
kafka_server_brokertopicmetrics_messagesinpersec_count{topic="orders"} 40.0
kafka_server_brokertopicmetrics_messagesinpersec_count{topic="Pay.v2"} 30.0
kafka_server_brokertopicmetrics_total_bytesinpersec_count 7.0E9
kafka_server_brokertopicmetrics_total_bytesinpersec_oneminuterate 71234.75
kafka_server_brokertopicmetrics_total_messagesinpersec_count 70.0
kafka_server_brokertopicmetrics_total_replicationbytesinpersec_count 123.0
kafka_server_fetcherlagmetrics_total_consumerlag_clientid_replicafetcherthread_0_2_topic_orders_partition_1_value 12.0
kafka_server_fetcherstats_total_bytespersec_clientid_replicafetcherthread_0_2_brokerhost_h2_brokerport_9092_count 555.0
kafka_server_replicamanager_total_underreplicatedpartitions_value 1.0
kafka_server_replicamanager_total_partitioncount_value 3.0
"""

# examples/kafka-0-8-2.yml: logs without their type, and under exporter 1.x counts without a type lose their _total.
OLD = (
    JVM
    + """kafka_log_logendoffset{partition="0",topic="orders"} 900.0
kafka_log_logendoffset{partition="3",topic="Pay.v2"} 30.0
kafka_log_logstartoffset{partition="0",topic="orders"} 100.0
kafka_log_size{partition="0",topic="orders"} 5.0E8
kafka_server_brokertopicmetrics_bytesin_total 7.0E9
kafka_server_brokertopicmetrics_bytesin{topic="orders"} 4.0E9
kafka_server_brokertopicmetrics_bytesin{topic="Pay.v2"} 3.0E9
kafka_server_brokertopicmetrics_messagesin_total 70.0
kafka_server_brokertopicmetrics_messagesin{topic="orders"} 40.0
kafka_server_brokertopicmetrics_messagesin{topic="Pay.v2"} 30.0
kafka_server_brokertopicmetrics_replicationbytesin_total 123.0
kafka_server_fetcherlagmetrics_consumerlag{clientId="ReplicaFetcherThread-0-2",partition="1",topic="orders"} 12.0
kafka_server_fetcherstats_bytespersec{broker="h2:9092",clientId="ReplicaFetcherThread-0-2"} 555.0
kafka_server_replicamanager_underreplicatedpartitions 1.0
kafka_server_replicamanager_partitioncount 3.0
"""
)

# Helm charts of Confluent Platform: mean rates alone, under the very name that others give to counts.
RATES_ONLY = (
    JVM
    + """cp_kafka_server_replicamanager_underreplicatedpartitions 1.0
cp_kafka_server_brokertopicmetrics_bytesinpersec 71234.75
cp_kafka_server_brokertopicmetrics_messagesinpersec 7.25
cp_kafka_server_brokertopicmetrics_replicationbytesinpersec 0.125
"""
)

# What the exporter (1.0.1) makes of a log that is copied to another directory of the broker, ``is-future=true`` last or
# first among the keys of its MBean, and under which rules; {} is the metric's part. The copy of orders-0 ends at 10.
FUTURES = {
    "no rules": 'kafka_log_Log_Value{{is_future="true",name="{0}",partition="0",topic="orders"}} 10.0',
    "no rules, lower case": 'kafka_log_log_value{{is_future="true",name="{0}",partition="0",topic="orders"}} 10.0',
    # kafka-0-8-2.yml and Confluent's: the pattern of the partition takes in all that follows.
    "kafka-0-8-2.yml": 'kafka_log_{0}{{partition="0, is-future=true",topic="orders"}} 10.0',
    "kafka-0-8-2.yml, first": 'kafka_log_{0}_is_future_true{{partition="0",topic="orders"}} 10.0',
    "confluent": 'kafka_log_log_{0}{{partition="0, is-future=true",topic="orders"}} 10.0',
    # kafka-2_0_0.yml, kafka-kraft-3_0_0.yml and Strimzi's: the rule of two keys.
    "example": 'kafka_log_log_{0}_topic_orders{{is_future="true",partition="0"}} 10.0',
    "example, first": 'kafka_log_log_{0}_is_future_true{{partition="0",topic="orders"}} 10.0',
    # Rules that drop the key: the exporter adds the whole name where two samples would have the same labels.
    "dropped": 'kafka_log_log_{0}{{_objectname="kafka.log<type=Log, name={0}, topic=orders, partition=0, is-future=true>'
    '<>Value",partition="0",topic="orders"}} 10.0',
    # Older exporters do not.
    "dropped, same labels": 'kafka_log_log_{0}{{partition="0",topic="orders"}} 10.0',
    "a label of its own": 'kafka_log_log_{0}{{future="true",partition="0",topic="orders"}} 10.0',
}

WHOLE = {
    "example": EXAMPLE,
    "kraft": KRAFT,
    "no_rules": NO_RULES,
    "no_rules_lower": NO_RULES_LOWER,
    "confluent": CONFLUENT,
    "bitnami": BITNAMI,
    "old": OLD,
}
