// Nodes of the page by their names.

/** @param {string} id @returns {any} */
export const $ = (id) => document.getElementById(id);
