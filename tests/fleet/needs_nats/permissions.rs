//! The permissions in docs/fleet.md: three roles in a pool, and pools that cannot see each other.

use crate::servers::Servers;
use ralph::testing::{ExchangeDriver, PieceStream};
use std::fs;
use std::path::Path;
use std::time::Duration;

const LEASE: Duration = Duration::from_secs(30);

/// Returns the settings of a server in docs/fleet.md, with passwords for the tests.
fn documented_settings() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/fleet.md");
    let text = fs::read_to_string(path).unwrap();
    let (_, rest) = text.split_once("```nats\n").expect("a block of settings");
    let (settings, _) = rest.split_once("```").unwrap();
    [
        "admin",
        "shop-work",
        "shop-submit",
        "shop-watch",
        "bank-submit",
    ]
    .iter()
    .fold(settings.to_owned(), |settings, user| {
        let line = format!("user: {user}, password: \"CHANGE-ME\"");
        assert!(settings.contains(&line), "{line}");
        settings.replace(&line, &format!("user: {user}, password: \"secret-{user}\""))
    })
}

fn open(servers: &Servers, user: &str, pool: &str) -> Result<ExchangeDriver, String> {
    ExchangeDriver::open(&servers.url_of(user), pool, LEASE)
}

fn assert_denied<T: std::fmt::Debug>(result: Result<T, String>) {
    let error = result.unwrap_err();
    assert!(error.starts_with("the fleet refuses this"), "{error}");
    assert!(!error.contains("secret-"), "{error}");
}

#[test]
fn each_role_can_do_its_work_and_no_more() {
    let servers = Servers::with_config(1, &documented_settings());
    assert_denied(open(&servers, "shop-watch", "shop"));
    // A worker creates its pool.
    let work = open(&servers, "shop-work", "shop").unwrap();
    let file = servers.scratch().join("file");
    fs::write(&file, "code").unwrap();

    let submit = open(&servers, "shop-submit", "shop").unwrap();
    submit.put_blob("id/code", &file).unwrap();
    submit
        .append("id", PieceStream::Journal, 0, 0, b"plan\n", Some(0))
        .unwrap();
    submit.create_record("shop", "id").unwrap();
    submit.enqueue("shop", "key").unwrap();
    submit
        .append("id", PieceStream::Inbox, 0, 0, b"say\n", None)
        .unwrap();
    assert_denied(submit.next_job(Duration::ZERO));
    assert_denied(submit.announce("fake", 0));

    work.announce("one", 0).unwrap();
    let job = work.next_job(LEASE).unwrap().expect("a job");
    work.claim("shop", "one").unwrap();
    assert!(work.get_blob("id/code", &file).unwrap());
    let last = work.read("id", PieceStream::Journal, 0).unwrap()[0].0;
    work.append("id", PieceStream::Journal, 1, 5, b"moved\n", Some(last))
        .unwrap();
    job.extend().unwrap();

    let watch = open(&servers, "shop-watch", "shop").unwrap();
    assert_eq!(watch.record_names().unwrap(), ["shop"]);
    assert_eq!(watch.workers().unwrap(), ["one"]);
    assert_eq!(watch.queued().unwrap(), 0);
    assert_eq!(watch.read("id", PieceStream::Journal, 0).unwrap().len(), 2);
    assert_eq!(watch.read("id", PieceStream::Inbox, 0).unwrap().len(), 1);
    watch
        .follow("id", PieceStream::Journal, 0, |_, _| false)
        .unwrap();
    assert_denied(watch.append("id", PieceStream::Inbox, 0, 4, b"stop\n", None));
    assert_denied(watch.append("id", PieceStream::Journal, 9, 0, b"x\n", None));
    assert_denied(watch.claim("shop", "watcher"));
    assert_denied(watch.enqueue("shop", "other"));
    assert_denied(watch.put_blob("id/code", &file));
    assert_denied(watch.next_job(Duration::ZERO));
    assert_denied(watch.delete_loop("shop"));
    job.finish().unwrap();
    submit.delete_loop("shop").unwrap();
}

#[test]
fn users_of_one_pool_see_nothing_of_another() {
    let servers = Servers::with_config(1, &documented_settings());
    let shop = open(&servers, "shop-work", "shop").unwrap();
    shop.create_record("secret", "id").unwrap();
    open(&servers, "admin", "bank").unwrap();
    let bank = open(&servers, "bank-submit", "bank").unwrap();
    bank.create_record("own", "id2").unwrap();
    assert_denied(open(&servers, "bank-submit", "shop"));
    assert_denied(open(&servers, "shop-work", "bank"));
    let client = |user: &str| {
        let options = async_nats::ConnectOptions::with_user_and_password(
            user.into(),
            format!("secret-{user}"),
        );
        options.connect(servers.url(0))
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        use futures_util::StreamExt as _;
        let client = client("bank-submit").await.unwrap();
        for subject in [
            ">",
            "ralph.shop.>",
            "_INBOX.>",
            "_INBOX.ralph-shop.>",
            "$KV.>",
        ] {
            let mut seen = client.subscribe(subject).await.unwrap();
            client.flush().await.unwrap();
            // Any traffic of the other pool, with its replies.
            let other = shop.clone();
            tokio::task::spawn_blocking(move || other.record_names().unwrap())
                .await
                .unwrap();
            shop_append(&shop).await;
            let next = tokio::time::timeout(Duration::from_millis(100), seen.next()).await;
            assert!(!matches!(next, Ok(Some(_))), "{subject}: {next:?}");
        }
    });
}

async fn shop_append(shop: &ExchangeDriver) {
    let shop = shop.clone();
    let append = move || {
        shop.append("id", PieceStream::Inbox, 0, 0, b"say\n", None)
            .unwrap()
    };
    tokio::task::spawn_blocking(append).await.unwrap();
}

/// A server sends its reply to any subject that a request names. A watcher can use that to put bytes into a stream, but
/// they are no piece of it.
#[test]
fn replies_that_a_watcher_sends_to_an_inbox_are_ignored() {
    let servers = Servers::with_config(1, &documented_settings());
    let work = open(&servers, "shop-work", "shop").unwrap();
    work.append("id", PieceStream::Journal, 1, 0, b"line\n", None)
        .unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let options = async_nats::ConnectOptions::with_user_and_password(
            "shop-watch".into(),
            "secret-shop-watch".into(),
        );
        let client = options.connect(servers.url(0)).await.unwrap();
        let request = r#"{"last_by_subj":"ralph.shop.journal.id"}"#;
        let subject = "$JS.API.STREAM.MSG.GET.ralph-shop-journal";
        let sent = client.publish_with_reply(subject, "ralph.shop.inbox.id", request.into());
        sent.await.unwrap();
        client.flush().await.unwrap();
    });
    let next = work
        .append("id", PieceStream::Inbox, 0, 0, b"say\n", None)
        .unwrap();
    let pieces = work.read("id", PieceStream::Inbox, 0).unwrap();
    assert_eq!(pieces, [(next, b"say\n".to_vec())]);
}
