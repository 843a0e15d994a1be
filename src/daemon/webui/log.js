// A file as text that grows: the end of the file, what is appended to it, and earlier parts on request.
// It does not depend on the file.

import { html, useEffect, useLayoutEffect, useRef, useState } from "./vendor/preact-htm.js";
import { download, readFile } from "./api.js";
import { bytes } from "./format.js";
import { Heading } from "./ui.js";

/** Maximum number of bytes that one read returns. */
const READ = 64 * 1024;
/** Maximum number of characters that are kept; earlier ones can be loaded again. */
const KEPT = 2 * 1024 * 1024;
const EVERY = 1000;

/** The text of a file: reads it from `first`, a multiple of lines where possible, to its end. */
class Tail {
  text = "";
  /** Offset of the first byte that is shown, and of the next one to read. */
  first = 0;
  next = 0;
  #decoder = new TextDecoder();

  constructor(path) {
    this.path = path;
  }

  /** Reads appended bytes. Returns whether there were any. */
  async more() {
    const size = (await readFile(this.path, -1)).offset;
    if (size < this.next) this.#restart(0);
    if (this.next === 0 && size > READ) this.#restart(size - READ);
    if (size === this.next) return false;
    const { bytes: part } = await readFile(this.path, this.next, READ);
    this.next += part.length;
    this.text += this.#decoder.decode(part, { stream: true });
    if (this.text.length > KEPT) {
      const dropped = this.text.slice(0, this.text.length - KEPT / 2);
      this.text = this.text.slice(dropped.length);
      this.first += new TextEncoder().encode(dropped).length;
    }
    return part.length > 0;
  }

  /** Reads the part before the first byte that is shown. */
  async earlier() {
    const offset = Math.max(0, this.first - READ);
    const { bytes: part } = await readFile(this.path, offset, this.first - offset);
    this.text = new TextDecoder().decode(part) + this.text;
    this.first = offset;
  }

  /** Shows the file from an offset on: it was truncated, or its beginning is more than one read away. */
  #restart(offset) {
    Object.assign(this, { text: "", first: offset, next: offset });
    this.#decoder = new TextDecoder();
  }
}

/** A text that grows. It follows the end unless the reader scrolls up. */
export function Log({ path, title, missing = "The file does not exist or was deleted." }) {
  const [tail, setTail] = useState(() => new Tail(path));
  const [, render] = useState(0);
  const [error, setError] = useState("");
  const [follows, setFollows] = useState(true);
  const text = useRef();
  useEffect(() => {
    const fresh = new Tail(path);
    let timer;
    let isOver = false;
    const read = async () => {
      try {
        // A file that grows fast is read until its end.
        while (!document.hidden && !isOver && (await fresh.more())) render((count) => count + 1);
        setError("");
      } catch (failure) {
        setError(failure.status === 404 ? missing : failure.message);
      }
      if (!isOver) timer = setTimeout(read, EVERY);
    };
    setTail(fresh);
    read();
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [path]);
  useLayoutEffect(() => {
    if (follows) text.current.scrollTop = text.current.scrollHeight;
  }, [tail.text, follows]);
  const scrolled = ({ target }) => setFollows(target.scrollTop + target.clientHeight >= target.scrollHeight - 8);
  const failed = (failure) => setError(failure.message);
  const earlier = () => tail.earlier().then(() => render((count) => count + 1), failed);
  return html`<section class="log" aria-label=${title}>
    <div class="bar-of-log"><h2>${title}</h2><small>${bytes(tail.next)}</small>
      ${tail.first > 0 && html`<button type="button" onClick=${earlier}>Load earlier</button>`}
      <label><input type="checkbox" checked=${follows} onChange=${(event) => setFollows(event.target.checked)}
        />follow</label>
      <button type="button" onClick=${() => download(path).catch(failed)}>Download</button>
    </div>
    ${error && html`<p class="failure" role="alert">${error}</p>`}
    <pre ref=${text} tabindex="0" role="log" aria-live="off" aria-label="Text of ${title}"
      onScroll=${scrolled}>${tail.text}</pre>
  </section>`;
}

/** A page that shows the daemon's own log. */
export const LogPage = ({ title, path }) => html`<${Heading} title=${title} /><${Log} path=${path} title=${path}
  missing="The daemon writes its log to standard error. With --log_dir or --external_log_file it is shown here." />`;
