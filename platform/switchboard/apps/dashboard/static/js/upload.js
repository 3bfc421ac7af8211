// Uploads dropped or chosen files one at a time, so that an invalid file does not affect the others.

/**
 * @param {HTMLFormElement} form
 * @param {File} file
 * @returns {Promise<string>} the file's error; empty if it has none
 */
async function send(form, file) {
  const body = new FormData();
  body.set("csrf_token", form.elements.csrf_token.value);
  body.set("files", file);
  try {
    const answer = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/plain" } });
    if (answer.redirected) return `${file.name} was not uploaded: you were signed out. Sign in again.`;
    if (answer.ok) return await answer.text();
    return answer.status === 413 ? `${file.name} is larger than 5 MiB.` : `${file.name} could not be uploaded (${answer.status}).`;
  } catch {
    return `${file.name} could not be uploaded: the connection was lost.`;
  }
}

/**
 * @param {HTMLFormElement} form
 * @param {File[]} files
 */
async function sendAll(form, files) {
  const list = form.querySelector(".uploads");
  for (const file of files) {
    const line = list.appendChild(document.createElement("li"));
    line.textContent = `Uploading ${file.name} …`;
    const fault = await send(form, file);
    line.textContent = fault || `${file.name} was added.`;
    line.classList.toggle("fault", fault !== "");
  }
}

for (const form of document.querySelectorAll("form[data-upload]")) {
  form.querySelector("button").hidden = true;
  form.elements.files.addEventListener("change", (event) => {
    sendAll(form, [...event.target.files]);
    event.target.value = "";
  });
  for (const name of ["dragenter", "dragover"]) {
    form.addEventListener(name, (event) => {
      event.preventDefault();
      form.classList.add("over");
    });
  }
  for (const name of ["dragleave", "drop"]) form.addEventListener(name, () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    sendAll(form, [...event.dataTransfer.files]);
  });
}
