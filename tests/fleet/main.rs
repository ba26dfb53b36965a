//! The fleet with real NATS servers, which test.sh installs into target/nats.

mod servers;

mod needs_nats {
    mod commands;
    mod exchange;
    mod loops;
    mod outages;
    mod permissions;
}
