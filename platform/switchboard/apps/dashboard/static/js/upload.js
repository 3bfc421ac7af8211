// Uploads dropped or chosen files one at a time, so that an invalid file does not affect the others.
import { _ } from "./messages.js";

/**
 * @param {HTMLFormElement} form
 * @param {File} file
 * @returns {Promise<string>} the file's error; empty if it has none
 */
async function uploadFile(form, file) {
  const body = new FormData();
  body.set("csrf_token", form.elements.csrf_token.value);
  body.set("files", file);
  try {
    const response = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/plain" } });
    if (response.redirected) return `${file.name} was not uploaded: you were signed out. Sign in again.`;
    if (response.ok) return await response.text();
    return response.status === 413 ? `${file.name} is larger than 5 MiB.` : `${file.name} could not be uploaded (${response.status}).`;
  } catch {
    return `${file.name} could not be uploaded: the connection was lost.`;
  }
}

/**
 * @param {HTMLFormElement} form
 * @param {File[]} files
 */
async function uploadFiles(form, files) {
  const list = form.querySelector(".uploads");
  for (const file of files) {
    const line = list.appendChild(document.createElement("li"));
    line.textContent = _("Uploading {name} …", { name: file.name });
    const fault = await uploadFile(form, file);
    line.textContent = fault || _("{name} was added.", { name: file.name });
    line.classList.toggle("fault", fault !== "");
  }
}

for (const form of document.querySelectorAll("form[data-upload]")) {
  form.querySelector("button").hidden = true;
  const uploadChosen = () => {
    uploadFiles(form, [...form.elements.files.files]);
    form.elements.files.value = "";
  };
  form.elements.files.addEventListener("change", uploadChosen);
  // Files may have been chosen before this module ran.
  if (form.elements.files.files.length) uploadChosen();
  for (const name of ["dragenter", "dragover"]) {
    form.addEventListener(name, (event) => {
      event.preventDefault();
      form.classList.add("over");
    });
  }
  for (const name of ["dragleave", "drop"]) form.addEventListener(name, () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    uploadFiles(form, [...event.dataTransfer.files]);
  });
}
