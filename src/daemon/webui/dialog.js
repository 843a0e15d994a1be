// Confirmation of changes: a dialog that describes the change, makes the call, and shows its error.
// It does not depend on specific calls.

import { html, useEffect, useRef, useState } from "./vendor/preact-htm.js";

let open = () => {};

/**
 * Asks for confirmation of a change. `act` is called with the values of the dialog's fields and may throw; the error's
 * text is shown and the dialog stays open. `fields` are `{name, label, type, value, hint}`.
 */
export const confirmChange = (question) => open(question);

/** A button that asks for confirmation before a change. */
export const ChangeButton = ({
  label,
  ...question
}) => html`<button type="button" class=${question.danger ? "danger" : ""}
  onClick=${() => confirmChange({ action: label, ...question })}>${label}</button>`;

/** The place of dialogs; once in a page. */
export function DialogHost() {
  const [question, setQuestion] = useState(undefined);
  useEffect(() => {
    open = setQuestion;
  }, []);
  return question && html`<${Dialog} ...${question} close=${() => setQuestion(undefined)} />`;
}

function Dialog({ title, text, action, danger, fields = [], act, close }) {
  const dialog = useRef();
  const [error, setError] = useState("");
  const [isBusy, setBusy] = useState(false);
  useEffect(() => dialog.current.showModal(), []);
  const submit = async (event) => {
    event.preventDefault();
    const form = event.target;
    const valueOf = ({ name, type }) => (type === "checkbox" ? form.elements[name].checked : form.elements[name].value);
    setBusy(true);
    setError("");
    try {
      await act(Object.fromEntries(fields.map((field) => [field.name, valueOf(field)])));
      close();
    } catch (failure) {
      setError(failure.message);
      setBusy(false);
    }
  };
  return html`<dialog ref=${dialog} aria-labelledby="dialog-title" onClose=${close}><form onSubmit=${submit}>
    <h2 id="dialog-title">${title}</h2>
    <p>${text}</p>
    ${fields.map(
      (field) => html`<label class=${field.type}>
      ${field.type === "checkbox" && html`<input type="checkbox" name=${field.name} />`}${field.label}
      ${
        field.type !== "checkbox" &&
        html`<input name=${field.name} type=${field.type ?? "text"}
        value=${field.value} />`
      }
      ${field.hint && html`<small>${field.hint}</small>`}
    </label>`,
    )}
    ${error && html`<p class="failure" role="alert">${error}</p>`}
    <div class="buttons">
      <button type="button" onClick=${close}>Cancel</button>
      <button type="submit" class=${danger ? "danger solid" : "primary"} disabled=${isBusy}>${action}</button>
    </div>
  </form></dialog>`;
}
