// HTTP calls to the daemon that serves the page: JSON calls, event records, files, and the user's credentials.
// It does not interpret the answers.

const KEY = "authorization";

/** An answer other than 2xx, or none at all (status 0). The message is the daemon's own text. */
export class CallError extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** The value of the Authorization header; "" without a user. It is kept until the browser's tab is closed. */
export const credentials = () => sessionStorage.getItem(KEY) ?? "";

/** Name of the user who is logged in; "" without one. */
export function user() {
  const encoded = credentials().slice("Basic ".length);
  if (!encoded) return "";
  const bytes = Uint8Array.from(atob(encoded), (char) => char.charCodeAt(0));
  return new TextDecoder().decode(bytes).split(":")[0];
}

export function logIn(name, password) {
  const bytes = new TextEncoder().encode(`${name}:${password}`);
  sessionStorage.setItem(KEY, `Basic ${btoa(String.fromCharCode(...bytes))}`);
}

export function logOut() {
  sessionStorage.removeItem(KEY);
}

let onUnauthorized = () => {};

/** Sets the function that is called on an answer 401. */
export function whenUnauthorized(listener) {
  onUnauthorized = listener;
}

/** Sends a request and returns the response if it is 2xx. */
async function request(path, options = {}) {
  const authorization = credentials();
  const headers = { ...options.headers, ...(authorization && { Authorization: authorization }) };
  let response;
  try {
    // Without credentials of its own the browser shows no log-in dialog. A master that does not lead redirects to
    // another origin, which is not followed.
    response = await fetch(path, { ...options, headers, credentials: "omit", redirect: "manual", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError(0, "The daemon cannot be reached.");
  }
  if (response.ok) return response;
  if (response.type === "opaqueredirect") throw new CallError(307, "This master does not lead.");
  if (response.status === 401) onUnauthorized();
  const text = (await response.text()).trim();
  throw new CallError(response.status, text || `${response.status} ${response.statusText}`);
}

const JSON_HEADERS = { "Content-Type": "application/json", Accept: "application/json" };

/** Makes an operator call and returns the body of its answer; undefined if the answer has none. */
export async function call(type, body) {
  const field = type.toLowerCase();
  const message = body === undefined ? { type } : { type, [field]: body };
  const options = { method: "POST", headers: JSON_HEADERS, body: JSON.stringify(message) };
  const text = await (await request("/api/v1", options)).text();
  return text ? (JSON.parse(text)[field] ?? {}) : undefined;
}

/** The JSON document of a read endpoint. */
export const read = async (path) => (await request(path)).json();

/**
 * Subscribes to the operator events and calls `onEvent` with each, one after the other, until the stream ends, which is
 * an error.
 */
export async function subscribe(onEvent, signal) {
  const options = { method: "POST", headers: JSON_HEADERS, body: '{"type":"SUBSCRIBE"}', signal };
  const reader = (await request("/api/v1", options)).body.getReader();
  const records = new Records();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new CallError(0, "The event stream has ended.");
    for (const record of records.add(value)) await onEvent(JSON.parse(record));
  }
}

/** Splits a byte stream in RecordIO: the decimal length of a record, a line feed, the record. */
class Records {
  #parts = [];
  #bytes = 0;
  /** Length of the record that has begun; -1 before its length is known. */
  #length = -1;

  /** Adds bytes and yields the records that are complete. */
  *add(chunk) {
    this.#parts.push(chunk);
    this.#bytes += chunk.length;
    for (;;) {
      if (this.#length < 0) {
        const bytes = this.#join();
        const end = bytes.indexOf(10);
        if (end < 0) return;
        this.#length = Number(new TextDecoder().decode(bytes.subarray(0, end)));
        if (!Number.isInteger(this.#length)) throw new CallError(0, "The event stream is invalid.");
        this.#keep(bytes.subarray(end + 1));
      }
      if (this.#bytes < this.#length) return;
      const bytes = this.#join();
      const record = new TextDecoder().decode(bytes.subarray(0, this.#length));
      this.#keep(bytes.subarray(this.#length));
      this.#length = -1;
      yield record;
    }
  }

  #keep(bytes) {
    this.#parts = [bytes];
    this.#bytes = bytes.length;
  }

  #join() {
    if (this.#parts.length === 1) return this.#parts[0];
    const whole = new Uint8Array(this.#bytes);
    let at = 0;
    for (const part of this.#parts) {
      whole.set(part, at);
      at += part.length;
    }
    this.#keep(whole);
    return whole;
  }
}

const query = (path, more = {}) => new URLSearchParams({ path, ...more }).toString();

/** The entries of a directory. */
export const browse = (path) => read(`/files/browse?${query(path)}`);

/**
 * Reads bytes of a file: `{offset, bytes}`. Offset -1 reads nothing, and the answer's offset is the file's size. Length
 * -1 reads as much as one answer may contain.
 */
export async function readFile(path, offset, length = -1) {
  const response = await request(`/files/read?${query(path, { offset, length })}`);
  const raw = new Uint8Array(await response.arrayBuffer());
  // The JSON text contains the file's bytes as they are, valid UTF-8 or not: each byte becomes one character.
  let text = "";
  for (let at = 0; at < raw.length; at += 8192) text += String.fromCharCode(...raw.subarray(at, at + 8192));
  const part = JSON.parse(text);
  return { offset: part.offset, bytes: Uint8Array.from(part.data, (char) => char.charCodeAt(0)) };
}

/** Saves a file. A link alone would make the browser ask for a password where the daemon requires one. */
export async function download(path) {
  const link = document.createElement("a");
  link.download = path.split("/").pop();
  link.href = `/files/download?${query(path)}`;
  if (credentials()) link.href = URL.createObjectURL(await (await request(link.href)).blob());
  link.click();
  if (credentials()) setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
