// The texts of scripts in the language of the page, which has their translations in one element, except in English.

const element = document.getElementById("script-messages");
const messages = element ? JSON.parse(element.textContent) : {};

/**
 * Return a text in the language of the page.
 * @param {string} text  The English text, a message of the catalogs.
 * @param {Record<string, string | number>} [values]  What stands in the places of `{name}`.
 */
export function _(text, values = {}) {
  return (messages[text] ?? text).replace(/\{(\w+)\}/g, (place, name) => values[name] ?? place);
}
