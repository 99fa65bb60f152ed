"""The loads of one broker as jmx_exporter gives them under the configurations that are in use.

Broker 1 leads orders-0 and Pay.v2-3. Each text has the same values, as far as its configuration exports them.
"""

from __future__ import annotations

JVM = "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.7E9\n"
COUNTS = """# TYPE kafka_server_brokertopicmetrics_bytesin_total counter
kafka_server_brokertopicmetrics_bytesin_total 7.0E9
kafka_server_brokertopicmetrics_bytesin_total{topic="orders"} 4.0E9
kafka_server_brokertopicmetrics_replicationbytesin_total 123.0
kafka_server_brokertopicmetrics_bytesout_total 9.0E9
kafka_server_brokertopicmetrics_bytesout_total{topic="orders"} 8.0E9
kafka_server_brokertopicmetrics_bytesout_total{topic="Pay.v2"} 1.0E9
kafka_server_brokertopicmetrics_totalproducerequests_total 500.0
kafka_server_brokertopicmetrics_totalproducerequests_total{topic="orders"} 300.0
kafka_server_brokertopicmetrics_totalproducerequests_total{topic="Pay.v2"} 200.0
kafka_server_brokertopicmetrics_failedproducerequests_total{topic="orders"} 9.0
kafka_server_brokertopicmetrics_totalfetchrequests_total 7000.0
kafka_server_brokertopicmetrics_totalfetchrequests_total{topic="orders"} 4000.0
kafka_server_brokertopicmetrics_totalfetchrequests_total{topic="Pay.v2"} 3000.0
"""

# docker/jmx_exporter.yml of this project.
OWN = (
    JVM
    + COUNTS
    + """kafka_server_kafkarequesthandlerpool_brokerrequesthandleravgidlepercent_total 8.0E12
kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_total 9.0E12
kafka_network_requestmetrics_totaltimems{request="Produce",quantile="0.99"} 12.5
kafka_network_requestmetrics_totaltimems{request="FetchFollower",quantile="0.99"} 501.0
kafka_log_logflushstats_logflushrateandtimems{quantile="0.999"} 87.25
"""
)

# examples/kafka-2_0_0.yml of jmx_exporter, and Strimzi's: histograms as summaries.
EXAMPLE = (
    JVM
    + COUNTS
    + """# TYPE kafka_server_kafkarequesthandlerpool_brokerrequesthandleravgidlepercent_count counter
kafka_server_kafkarequesthandlerpool_brokerrequesthandleravgidlepercent_count_total 8.0E12
kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent_count_total 9.0E12
kafka_network_requestmetrics_totaltimems_count{request="Produce"} 500.0
kafka_network_requestmetrics_totaltimems{quantile="0.5",request="Produce"} 1.0
kafka_network_requestmetrics_totaltimems{quantile="0.99",request="Produce"} 12.5
kafka_network_requestmetrics_totaltimems{quantile="0.999",request="Produce"} 80.0
kafka_network_requestmetrics_totaltimems{quantile="0.99",request="FetchConsumer"} 300.0
kafka_network_requestmetrics_totaltimems{quantile="0.99",request="FetchFollower"} 501.0
kafka_network_requestmetrics_localtimems{quantile="0.99",request="Produce"} 3.0
kafka_log_logflushstats_logflushrateandtimems_count 77.0
kafka_log_logflushstats_logflushrateandtimems{quantile="0.99"} 4.0
kafka_log_logflushstats_logflushrateandtimems{quantile="0.999"} 87.25
"""
)

# Without rules: the attribute is in the name, the keys of the MBean in labels.
NO_RULES = """java_lang_Runtime_StartTime 1.7E12
kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",} 7.0E9
kafka_server_BrokerTopicMetrics_Count{name="BytesInPerSec",topic="orders",} 4.0E9
kafka_server_BrokerTopicMetrics_Count{name="ReplicationBytesInPerSec",} 123.0
kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec",} 9.0E9
kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec",topic="orders",} 8.0E9
kafka_server_BrokerTopicMetrics_Count{name="BytesOutPerSec",topic="Pay.v2",} 1.0E9
kafka_server_BrokerTopicMetrics_Count{name="TotalProduceRequestsPerSec",} 500.0
kafka_server_BrokerTopicMetrics_Count{name="TotalProduceRequestsPerSec",topic="orders",} 300.0
kafka_server_BrokerTopicMetrics_Count{name="TotalProduceRequestsPerSec",topic="Pay.v2",} 200.0
kafka_server_BrokerTopicMetrics_Count{name="FailedProduceRequestsPerSec",topic="orders",} 9.0
kafka_server_BrokerTopicMetrics_Count{name="TotalFetchRequestsPerSec",} 7000.0
kafka_server_BrokerTopicMetrics_Count{name="TotalFetchRequestsPerSec",topic="orders",} 4000.0
kafka_server_BrokerTopicMetrics_Count{name="TotalFetchRequestsPerSec",topic="Pay.v2",} 3000.0
kafka_server_BrokerTopicMetrics_OneMinuteRate{name="TotalFetchRequestsPerSec",topic="Pay.v2",} 3.25
kafka_server_KafkaRequestHandlerPool_Count{name="RequestHandlerAvgIdlePercent",} 9.0E12
kafka_server_KafkaRequestHandlerPool_Count{name="BrokerRequestHandlerAvgIdlePercent",} 8.0E12
kafka_server_KafkaRequestHandlerPool_OneMinuteRate{name="BrokerRequestHandlerAvgIdlePercent",} 1.0006
kafka_network_RequestMetrics_Count{name="TotalTimeMs",request="Produce",} 500.0
kafka_network_RequestMetrics_50thPercentile{name="TotalTimeMs",request="Produce",} 1.0
kafka_network_RequestMetrics_99thPercentile{name="TotalTimeMs",request="Produce",} 12.5
kafka_network_RequestMetrics_99thPercentile{name="LocalTimeMs",request="Produce",} 3.0
kafka_network_RequestMetrics_999thPercentile{name="TotalTimeMs",request="Produce",} 80.0
kafka_network_RequestMetrics_99thPercentile{name="TotalTimeMs",request="FetchFollower",} 501.0
kafka_log_LogFlushStats_Count{name="LogFlushRateAndTimeMs",} 77.0
kafka_log_LogFlushStats_99thPercentile{name="LogFlushRateAndTimeMs",} 4.0
kafka_log_LogFlushStats_999thPercentile{name="LogFlushRateAndTimeMs",} 87.25
kafka_log_Log_Value{name="LogEndOffset",topic="orders",partition="0",} 900.0
"""
NO_RULES_LOWER = "\n".join(
    line.partition("{")[0].lower() + line[len(line.partition("{")[0]) :] for line in NO_RULES.split("\n")
)

# examples/kafka-0-8-2.yml of jmx_exporter: no percentiles, and counts of times under the name of the times.
OLD_EXAMPLE = (
    JVM
    + COUNTS
    + """kafka_server_kafkarequesthandlerpool_brokerrequesthandleravgidlepercent 8.0E12
kafka_server_kafkarequesthandlerpool_requesthandleravgidlepercent 9.0E12
kafka_network_requestmetrics_totaltimems{request="Produce"} 500.0
kafka_network_requestmetrics_totaltimems{request="FetchFollower"} 600.0
kafka_log_logflushstats_logflushrateandtimems_count 77.0
"""
)

# A rule for Percent that exports the mean rate since the start.
MEAN_RATE = "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent 0.998\n"

WHOLE = {"own": OWN, "example": EXAMPLE, "no_rules": NO_RULES, "no_rules_lower": NO_RULES_LOWER}
