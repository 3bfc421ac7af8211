// Passkeys of the account page and of the sign-in page. Without support of the browser, their parts stay hidden.
import { _ } from "./messages.js";
const SUPPORTED = Boolean(window.PublicKeyCredential?.parseRequestOptionsFromJSON && window.PublicKeyCredential.prototype.toJSON);
const autofill = new AbortController();

/**
 * @param {HTMLFormElement} form
 * @returns {Promise<{options: object, state: string}>} the server's request
 */
async function loadRequest(form) {
  const response = await fetch(form.dataset.request, { headers: { Accept: "application/json" } });
  if (!response.ok || response.redirected) throw new Error(_("The server did not answer. Reload the page."));
  return response.json();
}

/** Submit the form with the browser's credential. */
function answer(form, state, credential) {
  form.elements.state.value = state;
  form.elements.credential.value = JSON.stringify(credential.toJSON());
  form.submit();
}

function showFault(form, error) {
  const fault = form.querySelector("[data-fault]");
  const names = { NotAllowedError: _("No passkey was used."), InvalidStateError: _("This authenticator has a passkey of your account already.") };
  fault.textContent = names[error.name] ?? error.message;
  fault.hidden = false;
}

async function add(form) {
  const { options, state } = await loadRequest(form);
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(options);
  answer(form, state, await navigator.credentials.create({ publicKey }));
}

async function signIn(form, choice = {}) {
  const { options, state } = await loadRequest(form);
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(options);
  answer(form, state, await navigator.credentials.get({ publicKey, ...choice }));
}

/** Offer passkeys among the browser's suggestions for the e-mail address, until one is chosen or the button is pressed. */
async function offerAutofill(form) {
  if (!(await PublicKeyCredential.isConditionalMediationAvailable?.())) return;
  try {
    await signIn(form, { mediation: "conditional", signal: autofill.signal });
  } catch {
    // The button is there.
  }
}

const form = document.querySelector("form[data-request]");
if (form && SUPPORTED) {
  const signsIn = "signIn" in form.dataset;
  form.hidden = false;
  document.querySelector("[data-no-passkeys]")?.remove();
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    autofill.abort();
    if (!signsIn && !form.reportValidity()) return;
    try {
      await (signsIn ? signIn(form) : add(form));
    } catch (error) {
      showFault(form, error);
    }
  });
  if (signsIn) offerAutofill(form);
}
