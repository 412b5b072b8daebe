//! Without a fault it keeps the contract, through real sockets. It does not speak HTTP/2.

const PROGRAM: http_target::contract::Program =
    http_target::contract::Program { path: env!("CARGO_BIN_EXE_lying-http"), lax: &[] };

macro_rules! honest {
    ($($name:ident)*) => {
        $(
            #[test]
            fn $name() {
                http_target::contract::run(stringify!($name), PROGRAM);
            }
        )*
    };
}

honest!(routes bodies head refusals keep_alive pipelining chunked fragments framing limits deaf_clients drain workers bad_variables);
