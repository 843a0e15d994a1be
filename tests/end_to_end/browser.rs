//! A headless Chromium for tests of the web page: navigation, clicks, texts, screenshots, and the rules of axe-core.
//!
//! It asserts nothing else about the page.

use std::path::PathBuf;
use std::process::Command;

use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use http::Method;
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use url::{ParseError, Url};

use crate::process::{Process, Stream};
use crate::support::look_for;

/// Script with rules of accessibility, which is evaluated in the page.
const AXE: &str = include_str!("../vendor/axe.min.js");

/// A browser with one window; it is closed when this is dropped.
pub struct Browser {
    runtime: Runtime,
    client: Client,
    driver: Process,
}

impl Browser {
    /// Starts a browser.
    ///
    /// # Panics
    /// Chromium or its driver is not installed.
    pub fn start() -> Browser {
        let is_there = Command::new("chromedriver").arg("--version").output().is_ok();
        assert!(is_there, "install the browser first: apt-get install chromium chromium-driver");
        let mut driver = Process::start(Command::new("chromedriver").arg("--port=0"));
        let line = driver.line(Stream::Stdout, &["started successfully on port"]);
        let port = line.trim_end_matches('.').rsplit(' ').next().unwrap();
        // Tests run as root, which Chromium's own sandbox refuses.
        let arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"];
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let capabilities = json!({ "goog:chromeOptions": { "args": arguments } });
        builder.capabilities(capabilities.as_object().unwrap().clone());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let client = runtime.block_on(builder.connect(&format!("http://127.0.0.1:{port}"))).unwrap();
        Browser { runtime, client, driver }
    }

    /// Makes a call of the Chrome DevTools protocol.
    fn devtools(&self, name: &'static str, parameters: Value) {
        self.runtime.block_on(self.client.issue_cmd(DevTools { name, parameters })).unwrap();
    }

    /// Sets the size of the view in pixels, and the colour scheme that the system prefers.
    pub fn view(&self, width: u32, height: u32, scheme: &str) {
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", size);
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", features);
    }

    pub fn open(&self, url: &str) {
        self.runtime.block_on(self.client.goto(url)).unwrap();
    }

    pub fn reload(&self) {
        self.runtime.block_on(self.client.refresh()).unwrap();
    }

    /// Opens an address in a new tab, which becomes the visible one.
    pub fn open_tab(&self, url: &str) {
        let tab = self.runtime.block_on(self.client.new_window(true)).unwrap().handle;
        self.runtime.block_on(self.client.switch_to_window(tab)).unwrap();
        self.open(url);
    }

    pub fn url(&self) -> String {
        self.runtime.block_on(self.client.current_url()).unwrap().to_string()
    }

    /// Runs a script and returns the value of its `return`.
    pub fn script(&self, script: &str) -> Value {
        self.runtime.block_on(self.client.execute(script, vec![])).unwrap()
    }

    /// Returns the page's visible text.
    pub fn text(&self) -> String {
        self.script("return document.body.innerText").as_str().unwrap_or_default().to_owned()
    }

    /// Waits until all these texts are on the page.
    pub fn shows(&self, texts: &[&str]) {
        let shown = look_for(|| {
            let text = self.text();
            texts.iter().all(|wanted| text.contains(wanted)).then_some(())
        });
        assert!(shown.is_some(), "{texts:?} are not on {}, which shows:\n{}", self.url(), self.text());
    }

    /// Clicks on the first visible element of an XPath, once it exists.
    pub fn click(&self, path: &str) {
        let clicked = look_for(|| {
            let element = self.runtime.block_on(self.client.find(Locator::XPath(path))).ok()?;
            // A rendering may have replaced the element: it is searched again then.
            self.runtime.block_on(element.click()).ok()
        });
        assert!(clicked.is_some(), "there is no {path} on {}, which shows:\n{}", self.url(), self.text());
    }

    pub fn click_link(&self, text: &str) {
        self.click(&format!("//a[normalize-space()='{text}']"));
    }

    pub fn click_button(&self, text: &str) {
        self.click(&format!("//button[normalize-space()='{text}']"));
    }

    /// Clicks on a button of the open dialog.
    pub fn confirm(&self, text: &str) {
        self.click(&format!("//dialog//button[normalize-space()='{text}']"));
    }

    /// Types into the field of this name or label, after emptying it.
    pub fn fill(&self, name: &str, text: &str) {
        let path = format!("//input[@name='{name}' or @aria-label='{name}']");
        let filled = look_for(|| {
            let field = self.runtime.block_on(self.client.find(Locator::XPath(&path))).ok()?;
            self.runtime.block_on(field.clear()).ok()?;
            self.runtime.block_on(field.send_keys(text)).ok()
        });
        assert!(filled.is_some(), "there is no field {name} on {}", self.url());
    }

    /// Saves a screenshot in the target directory: `tmp/browser/<name>.png`.
    pub fn picture(&self, name: &str) {
        let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("browser");
        std::fs::create_dir_all(&directory).unwrap();
        let picture = self.runtime.block_on(self.client.screenshot()).unwrap();
        std::fs::write(directory.join(format!("{name}.png")), picture).unwrap();
    }

    /// Asserts that the page does not scroll sideways.
    pub fn fits(&self) {
        let over = self.script("return document.documentElement.scrollWidth - document.documentElement.clientWidth");
        assert_eq!(over, 0, "{} is wider than the view", self.url());
    }

    /// Asserts that the page breaks no rule of axe-core.
    pub fn is_accessible(&self) {
        let script = format!(
            "const done = arguments[arguments.length - 1]; {AXE}; axe.run({{resultTypes: ['violations']}}).then((found) =>
            done(found.violations.map((one) => `${{one.id}}: ${{one.nodes.map((node) => node.html).join(' ')}}`)))"
        );
        let broken = self.runtime.block_on(self.client.execute_async(&script, vec![])).unwrap();
        assert_eq!(broken, json!([]), "{}", self.url());
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.runtime.block_on(self.client.clone().close());
        // The driver inherits an ignored SIGINT from a shell that runs the tests in the background, so SIGINT would not
        // end it.
        self.driver.kill();
    }
}

/// A call of the Chrome DevTools protocol, through ChromeDriver.
#[derive(Debug)]
struct DevTools {
    name: &'static str,
    parameters: Value,
}

impl WebDriverCompatibleCommand for DevTools {
    fn endpoint(&self, base: &Url, session: Option<&str>) -> Result<Url, ParseError> {
        base.join(&format!("session/{}/goog/cdp/execute", session.unwrap_or_default()))
    }

    fn method_and_body(&self, _url: &Url) -> (Method, Option<String>) {
        (Method::POST, Some(json!({ "cmd": self.name, "params": self.parameters }).to_string()))
    }
}
