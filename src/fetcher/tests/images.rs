//! Tests images that are fetched into a store: from a registry with manifests of schema 1 only, and from HDFS.
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use fetcher::image::{ImageRequest, Store, fetch_image};
use sha2::{Digest, Sha256};

struct Directory(PathBuf);

impl Directory {
    fn new(name: &str) -> Directory {
        let path = std::env::temp_dir().join(format!("tepui-images-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Directory(path)
    }

    fn wanted(&self, name: &str, registry: String) -> ImageRequest {
        let store = self.0.join("store");
        ImageRequest { name: name.into(), registry, store, cached: true, stall: 120, logins: String::new() }
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn digest(bytes: &[u8]) -> String {
    let hex: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256:{hex}")
}

/// Returns a layer with one file.
fn layer(name: &str, text: &str) -> Vec<u8> {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_size(text.len() as u64);
    header.set_mode(0o644);
    header.set_uid(u64::from(rustix::process::getuid().as_raw()));
    header.set_gid(u64::from(rustix::process::getgid().as_raw()));
    tar.append_data(&mut header, name, text.as_bytes()).unwrap();
    tar.into_inner().unwrap()
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// Starts a registry that answers this many requests with the files at their paths.
fn serve(requests: usize, files: Vec<(String, Vec<u8>)>) -> (String, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let thread = std::thread::spawn(move || {
        for _ in 0..requests {
            let (mut stream, _) = listener.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let path = lines.next().unwrap().split(' ').nth(1).unwrap().to_owned();
            assert!(lines.take_while(|line| !line.is_empty()).count() > 0);
            let body = files.iter().find(|(known, _)| *known == path).map(|(_, body)| body.as_slice());
            let status = if body.is_some() { "200 OK" } else { "404 Not Found" };
            let body = body.unwrap_or_default();
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len()).unwrap();
            stream.write_all(body).unwrap();
        }
    });
    (address, thread)
}

#[test]
fn manifests_of_the_first_kind() {
    let directory = Directory::new("schema1");
    let (lower, upper) = (packed(&layer("file", "lower")), packed(&layer("file", "upper")));
    let (low, up) = (digest(&lower), digest(&upper));
    let label = r#", \"Labels\": {\"com.nvidia.volumes.needed\": \"nvidia_driver\"}"#;
    let manifest = format!(
        r#"{{"schemaVersion": 1, "name": "team/app", "tag": "1", "architecture": "amd64",
        "fsLayers": [{{"blobSum": "{low}"}}, {{"blobSum": "{up}"}}, {{"blobSum": "{low}"}}],
        "history": [{{"v1Compatibility": "{{\"throwaway\": true, \"config\": {{\"Cmd\": [\"run\"], \"WorkingDir\": \"/w\"{label}}}}}"}},
            {{"v1Compatibility": "{{}}"}}, {{"v1Compatibility": "{{\"id\": \"x\"}}"}}], "signatures": []}}"#
    );
    let files = vec![
        ("/v2/team/app/manifests/1".to_owned(), manifest.into_bytes()),
        (format!("/v2/team/app/blobs/{low}"), lower),
        (format!("/v2/team/app/blobs/{up}"), upper),
    ];
    let (address, thread) = serve(3, files);
    let wanted = directory.wanted(&format!("{address}/team/app:1"), "https://127.0.0.1:1".into());
    let image = fetch_image(&wanted).unwrap();
    thread.join().unwrap();
    assert_eq!((image.defaults.cmd.clone(), image.defaults.working_dir.as_str()), (vec!["run".to_owned()], "/w"));
    assert!(image.gpu_driver);
    let store = Store::open(&wanted.store).unwrap();
    let texts = image.layers.iter().map(|id| fs::read_to_string(store.layer(id).join("file")).unwrap());
    assert_eq!(texts.collect::<Vec<_>>(), ["lower", "upper"]);
    // The image is in the store now: no server is contacted.
    assert_eq!(fetch_image(&wanted).unwrap(), image);
}

/// The variable that names the client affects the whole process, so this runs in a process of its own.
#[test]
fn images_in_hdfs() {
    if std::env::var_os(fetcher::HADOOP_HOME).is_none() {
        let directory = Directory::new("hdfs");
        fs::create_dir_all(directory.0.join("bin")).unwrap();
        // hadoop fs -copyToLocal hdfs://... TARGET
        let script = format!(
            "#!/bin/sh\n[ \"$1$2\" = fs-copyToLocal ] && exec cp \"{}/${{3#hdfs://}}\" \"$4\"\n",
            directory.0.display()
        );
        let client = directory.0.join("bin/hadoop");
        fs::write(&client, script).unwrap();
        let mode = <fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
        fs::set_permissions(&client, mode).unwrap();
        let mut test = Command::new(std::env::current_exe().unwrap());
        let test = test.args(["--exact", "images_in_hdfs", "--nocapture"]).env(fetcher::HADOOP_HOME, &directory.0);
        assert!(test.status().unwrap().success());
        return;
    }
    let directory = PathBuf::from(std::env::var_os(fetcher::HADOOP_HOME).unwrap());
    // The same layer twice: it cannot be mounted above itself.
    let (one, two) = (layer("file", "one"), layer("file", "two"));
    let ids = [&one, &two, &one].map(|bytes| format!("\"{}\"", digest(bytes))).join(", ");
    let mut archive = tar::Builder::new(Vec::new());
    let mut add = |name: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        archive.append_data(&mut header, name, bytes).unwrap();
    };
    add("1.tar", &one);
    add("2.tar", &two);
    add("config.json", format!(r#"{{"rootfs": {{"diff_ids": [{ids}]}}}}"#).as_bytes());
    let layers = r#"[{"Config": "config.json", "Layers": ["1.tar", "2.tar", "1.tar"]}]"#;
    add("manifest.json", layers.as_bytes());
    fs::create_dir_all(directory.join("namenode/images")).unwrap();
    fs::write(directory.join("namenode/images/app:latest.tar"), archive.into_inner().unwrap()).unwrap();
    let wanted = |name: &str| ImageRequest {
        name: name.into(),
        registry: "hdfs://namenode/images".into(),
        store: directory.join("store"),
        cached: true,
        stall: 120,
        logins: String::new(),
    };
    let image = fetch_image(&wanted("app")).unwrap();
    let store = Store::open(&directory.join("store")).unwrap();
    let texts = image.layers.iter().map(|id| fs::read_to_string(store.layer(id).join("file")).unwrap());
    assert_eq!(texts.collect::<Vec<_>>(), ["two", "one"]);
    let error = fetch_image(&wanted("other:1")).unwrap_err().to_string();
    assert!(error.contains("There is no image 'other:1': hdfs://namenode/images/other:1.tar"), "{error}");
}
