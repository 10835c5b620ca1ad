// Shows openapi.json: every operation with its parameters, its body and its answers. Nothing is loaded from elsewhere.
"use strict";

const element = (name, text, ...children) => {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
};

const resolve = (api, schema) => {
  if (!schema || !schema.$ref) return schema;
  return api.components.schemas[schema.$ref.split("/").pop()];
};

/** A schema as an example of its shape; what refers to itself is named. */
const shape = (api, schema, seen = []) => {
  if (!schema) return null;
  if (schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return seen.includes(name) ? `(${name})` : shape(api, resolve(api, schema), [...seen, name]);
  }
  if (schema.enum) return schema.enum.join(" | ");
  if (schema.allOf) return Object.assign({}, ...schema.allOf.map((part) => shape(api, part, seen)));
  const choices = (schema.oneOf || schema.anyOf || []).filter((part) => part.type !== "null");
  if (choices.length === 1) return shape(api, choices[0], seen);
  if (choices.length) return choices.map((part) => shape(api, part, seen));
  const types = [].concat(schema.type || []);
  if (types.includes("array")) return [shape(api, schema.items, seen)];
  if (schema.properties) {
    return Object.fromEntries(Object.entries(schema.properties).map(([key, part]) => [key, shape(api, part, seen)]));
  }
  if (schema.additionalProperties) return { "…": shape(api, schema.additionalProperties, seen) };
  return types.join(" | ") + (schema.format ? ` (${schema.format})` : "");
};

const content = (api, title, part) => {
  const [kind, media] = Object.entries(part.content || {})[0] || [];
  const box = element("div", "", element("h4", `${title}${part.description ? `: ${part.description}` : ""}`));
  if (media && media.schema) box.append(element("pre", JSON.stringify(shape(api, media.schema), null, 2)));
  else if (kind) box.append(element("p", kind));
  return box;
};

const operation = (api, path, method, told) => {
  const box = element("details", "", element("summary", "", element("span", method.toUpperCase()), element("code", path), ` ${told.summary || ""}`));
  box.querySelector("span").className = "method";
  box.dataset.text = `${method} ${path} ${told.summary || ""} ${told.description || ""} ${(told.tags || []).join(" ")}`.toLowerCase();
  box.addEventListener("toggle", () => {
    if (box.dataset.filled) return;
    box.dataset.filled = "yes";
    if (told.description) box.append(element("p", told.description));
    if (told.parameters) {
      const rows = told.parameters.map((part) =>
        element("tr", "", element("td", part.name), element("td", part.in), element("td", JSON.stringify(shape(api, part.schema))), element("td", part.description || "")));
      box.append(element("h4", "Parameters"), element("table", "", ...rows));
    }
    if (told.requestBody) box.append(content(api, "Body", told.requestBody));
    for (const [status, answer] of Object.entries(told.responses || {})) box.append(content(api, status, answer));
  });
  return box;
};

fetch("/api/v1/openapi.json").then((answer) => answer.json()).then((api) => {
  const main = document.getElementById("operations");
  const methods = ["get", "post", "put", "patch", "delete"];
  const all = Object.entries(api.paths).flatMap(([path, item]) =>
    methods.filter((method) => item[method]).map((method) => operation(api, path, method, item[method])));
  main.replaceChildren(...all);
  document.getElementById("filter").addEventListener("input", (event) => {
    const wanted = event.target.value.toLowerCase();
    for (const box of all) box.hidden = !box.dataset.text.includes(wanted);
  });
});
