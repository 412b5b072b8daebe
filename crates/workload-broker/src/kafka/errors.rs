//! The numbers of Kafka's errors (`org.apache.kafka.common.protocol.Errors`).

pub(super) const NONE: i16 = 0;
pub(super) const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
pub(super) const LEADER_NOT_AVAILABLE: i16 = 5;
pub(super) const NOT_LEADER: i16 = 6;
pub(super) const COORDINATOR_LOADS: i16 = 14;
pub(super) const COORDINATOR_NOT_AVAILABLE: i16 = 15;
pub(super) const NOT_COORDINATOR: i16 = 16;
pub(super) const TOPIC_EXISTS: i16 = 36;

/// Names of those that a client of one node may meet.
const NAMES: [(i16, &str); 37] = [
    (-1, "UNKNOWN_SERVER_ERROR"),
    (1, "OFFSET_OUT_OF_RANGE"),
    (2, "CORRUPT_MESSAGE"),
    (UNKNOWN_TOPIC_OR_PARTITION, "UNKNOWN_TOPIC_OR_PARTITION"),
    (4, "INVALID_FETCH_SIZE"),
    (LEADER_NOT_AVAILABLE, "LEADER_NOT_AVAILABLE"),
    (NOT_LEADER, "NOT_LEADER_OR_FOLLOWER"),
    (7, "REQUEST_TIMED_OUT"),
    (9, "REPLICA_NOT_AVAILABLE"),
    (10, "MESSAGE_TOO_LARGE"),
    (12, "OFFSET_METADATA_TOO_LARGE"),
    (COORDINATOR_LOADS, "COORDINATOR_LOAD_IN_PROGRESS"),
    (COORDINATOR_NOT_AVAILABLE, "COORDINATOR_NOT_AVAILABLE"),
    (NOT_COORDINATOR, "NOT_COORDINATOR"),
    (17, "INVALID_TOPIC_EXCEPTION"),
    (18, "RECORD_LIST_TOO_LARGE"),
    (19, "NOT_ENOUGH_REPLICAS"),
    (20, "NOT_ENOUGH_REPLICAS_AFTER_APPEND"),
    (21, "INVALID_REQUIRED_ACKS"),
    (22, "ILLEGAL_GENERATION"),
    (24, "INVALID_GROUP_ID"),
    (25, "UNKNOWN_MEMBER_ID"),
    (29, "TOPIC_AUTHORIZATION_FAILED"),
    (30, "GROUP_AUTHORIZATION_FAILED"),
    (31, "CLUSTER_AUTHORIZATION_FAILED"),
    (32, "INVALID_TIMESTAMP"),
    (35, "UNSUPPORTED_VERSION"),
    (TOPIC_EXISTS, "TOPIC_ALREADY_EXISTS"),
    (37, "INVALID_PARTITIONS"),
    (38, "INVALID_REPLICATION_FACTOR"),
    (40, "INVALID_CONFIG"),
    (41, "NOT_CONTROLLER"),
    (42, "INVALID_REQUEST"),
    (44, "POLICY_VIOLATION"),
    (56, "KAFKA_STORAGE_ERROR"),
    (87, "INVALID_RECORD"),
    (89, "THROTTLING_QUOTA_EXCEEDED"),
];

/// An error in words.
#[cold]
pub(super) fn words(error: i16) -> String {
    let named = NAMES.iter().find(|(number, _)| *number == error);
    match named {
        Some((_, name)) => format!("{name} ({error})"),
        None => format!("error {error}"),
    }
}

/// A partition that is being made has these errors for a moment.
pub(super) fn is_partition_coming(error: i16) -> bool {
    matches!(
        error,
        UNKNOWN_TOPIC_OR_PARTITION | LEADER_NOT_AVAILABLE | NOT_LEADER
    )
}

/// A coordinator that is being made has these errors for a moment.
pub(super) fn is_coordinator_coming(error: i16) -> bool {
    matches!(
        error,
        COORDINATOR_LOADS | COORDINATOR_NOT_AVAILABLE | NOT_COORDINATOR
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_have_their_name_and_number() {
        assert_eq!(words(10), "MESSAGE_TOO_LARGE (10)");
        assert_eq!(words(-1), "UNKNOWN_SERVER_ERROR (-1)");
        assert_eq!(words(1234), "error 1234");
        assert!(NAMES.is_sorted_by_key(|(number, _)| *number));
    }
}
