// The files of a sandbox: directories, and the text of a file.

import { html, useEffect, useState } from "./vendor/preact-htm.js";
import { browse, download } from "./api.js";
import { bytes, dateTime } from "./format.js";
import { Log } from "./log.js";
import { Table } from "./table.js";
import { Failure } from "./ui.js";

const nameOf = (path) => path.split("/").pop();
const isDirectory = (entry) => entry.mode.startsWith("d");

const columns = (open) => [
  {
    name: "name",
    title: "Name",
    value: (entry) => `${isDirectory(entry) ? 0 : 1}${nameOf(entry.path)}`,
    cell: (entry) =>
      html`<button type="button" class="link" onClick=${() => open(entry)}>${nameOf(entry.path)}${
        isDirectory(entry) ? "/" : ""
      }</button>`,
  },
  {
    name: "size",
    title: "Size",
    width: "6rem",
    numeric: true,
    value: (entry) => entry.size,
    cell: (entry) => (isDirectory(entry) ? "" : bytes(entry.size)),
  },
  {
    name: "changed",
    title: "Changed",
    width: "13rem",
    minor: true,
    value: (entry) => entry.mtime,
    cell: (entry) => dateTime(entry.mtime),
  },
  {
    name: "owner",
    title: "Owner",
    width: "9rem",
    minor: true,
    value: (entry) => entry.uid,
    cell: (entry) => `${entry.uid}:${entry.gid}`,
  },
  { name: "mode", title: "Mode", width: "7rem", minor: true, cell: (entry) => html`<code>${entry.mode}</code>` },
  {
    name: "save",
    title: "Save",
    width: "6.5rem",
    cell: (entry) =>
      !isDirectory(entry) &&
      html`<button type="button" class="link" aria-label="Download ${nameOf(entry.path)}"
      onClick=${() => download(entry.path)}>Download</button>`,
  },
];

/** A browser of a directory tree. */
export function Sandbox({ root }) {
  const [path, setPath] = useState(root);
  const [file, setFile] = useState(undefined);
  const [answer, setAnswer] = useState({});
  const list = () =>
    browse(path).then(
      (entries) => setAnswer({ entries }),
      (error) => setAnswer({ error }),
    );
  useEffect(() => {
    list();
  }, [path]);
  const open = (entry) => {
    if (isDirectory(entry)) setPath(entry.path);
    else setFile(entry.path);
  };
  const steps = path.slice(root.length).split("/").filter(Boolean);
  const up = steps.map(
    (name, index) => html` / <button type="button" class="link"
    onClick=${() => setPath([root, ...steps.slice(0, index + 1)].join("/"))}>${name}</button>`,
  );
  return html`<p class="path"><button type="button" class="link" onClick=${() => setPath(root)}>sandbox</button>${up}
      <button type="button" class="end" onClick=${list}>Reload</button></p>
    ${answer.error && html`<${Failure} error=${answer.error} />`}
    ${
      answer.entries &&
      html`<${Table} label="Files" columns=${columns(open)} rows=${answer.entries} sort=${{ name: "name" }}
      rowKey=${(entry) => entry.path} empty="The directory is empty." />`
    }
    ${file && html`<${Log} path=${file} title=${nameOf(file)} />`}`;
}
