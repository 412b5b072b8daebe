//! Against a broker that runs: `PLIMSOLL_MQTT=127.0.0.1:1883 cargo test -p plimsoll-workload-broker -- --ignored mqtt`.

use super::{DROPPED_TOPIC, Mqtt, MqttConfig, Qos, STORED_TOPIC, count};
use crate::amqp::live::{Live, bodies};
use crate::dialect::{Dialect, Role};

fn open(config: MqttConfig) -> Live<Mqtt> {
    Live::open("PLIMSOLL_MQTT", Mqtt::new(config).unwrap())
}

#[test]
#[ignore = "needs a broker"]
fn mqtt_carries_messages_with_every_qos() {
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce] {
        for (share, topic_alias) in [(None, false), (Some("g".to_owned()), true)] {
            let topic = format!("plimsoll/{qos:?}/{}", std::process::id());
            let mut config = MqttConfig::new(Role::Reader, &topic, qos);
            config.share = share;
            let mut reader = open(config);
            let mut config = MqttConfig::new(Role::Writer, &topic, qos);
            config.topic_alias = topic_alias;
            let mut writer = open(config);
            println!("{qos:?}: {:?}", writer.client.limits());
            for body in bodies() {
                writer.publish(&body);
            }
            if qos != Qos::AtMostOnce {
                writer.read_until(|it| it.ears.confirmed.len() == bodies().len());
            }
            assert_eq!(writer.ears.refused, Vec::<String>::new());
            reader.read_until(|it| it.ears.delivered.len() == bodies().len());
            assert!(reader.ears.delivered == bodies(), "in order and unchanged");
            for it in [&mut reader, &mut writer] {
                let mut out = Vec::new();
                it.client.close(&mut out);
                it.write(&out);
            }
        }
    }
}

#[test]
#[ignore = "needs a broker"]
fn mqtt_says_that_a_message_reaches_nobody() {
    let topic = format!("plimsoll/nobody/{}", std::process::id());
    let mut writer = open(MqttConfig::new(Role::Writer, &topic, Qos::AtLeastOnce));
    writer.publish(b"to nobody");
    writer.read_until(|it| !it.ears.refused.is_empty());
    assert_eq!(writer.ears.refused, ["no matching subscribers (0x10)"]);
}

#[test]
#[ignore = "needs mosquitto"]
fn mosquitto_counts_its_messages() {
    for topic in [STORED_TOPIC, DROPPED_TOPIC] {
        let mut config = MqttConfig::new(Role::Reader, topic, Qos::AtMostOnce);
        config.retained = true;
        let mut reader = open(config);
        reader.read_until(|it| !it.ears.delivered.is_empty());
        let number = count(&reader.ears.delivered[0]);
        println!("{topic}: {number:?}");
        assert!(number.is_some());
    }
}
