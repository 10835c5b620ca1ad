import type { Properties } from "../../../api/types";
import { FIELD_KEYS, SECTIONS } from "./fields";

/** State of the form: a value per field, and the properties without a field. */
export interface Draft {
  values: Record<string, string | boolean>;
  others: { key: string; value: string }[];
}

const FIELDS = SECTIONS.flatMap((section) => section.fields);
/** Property names up to ElasticJob 3.0.4; the server keeps the stored spelling. */
const OLD_NAMES: Record<string, string> = {
  jobExecutorThreadPoolSizeProviderType: "jobExecutorServiceHandlerType",
};
const DEFAULTS: Record<string, boolean> = { misfire: true, monitorExecution: true };

export function toDraft(properties: Properties): Draft {
  const props = properties.props ?? {};
  const values: Draft["values"] = {};
  for (const { key, kind } of FIELDS) {
    const stored = key.startsWith("props.")
      ? props[key.slice("props.".length)]
      : (properties[key as keyof Properties] ?? properties[OLD_NAMES[key] as keyof Properties]);
    if (kind === "switch") values[key] = (stored ?? DEFAULTS[key] ?? false) === true;
    else values[key] = stored === undefined || stored === null ? "" : String(stored);
  }
  const others = Object.entries(props)
    .filter(([key]) => !FIELD_KEYS.has(`props.${key}`))
    .map(([key, value]) => ({ key, value }));
  return { values, others };
}

/** The whole configuration; properties without a field are copied from `base`. */
export function toProperties(draft: Draft, base: Properties): Properties {
  const properties: Record<string, unknown> = { ...base };
  for (const key of Object.values(OLD_NAMES)) delete properties[key];
  const props: Record<string, string> = {};
  for (const { key, value } of draft.others) if (key.trim()) props[key.trim()] = value;
  for (const { key, kind } of FIELDS) {
    const value = draft.values[key] ?? "";
    if (key.startsWith("props.")) {
      if (value !== "") props[key.slice("props.".length)] = String(value);
    } else if (kind === "switch") {
      properties[key] = value === true;
    } else if (value === "") {
      delete properties[key];
    } else {
      properties[key] = kind === "number" ? Number(value) : value;
    }
  }
  properties.props = props;
  return properties;
}

/** Whether the user changed anything; text that was typed and taken back is no edit. */
export const isEdited = (draft: Draft, base: Properties): boolean =>
  JSON.stringify(toProperties(draft, base)) !== JSON.stringify(toProperties(toDraft(base), base));

/** What a job of a type cannot run without. */
const REQUIRED: Record<string, string> = {
  SCRIPT: "script.command.line",
  HTTP: "http.uri",
};

/** The key of a property that is needed and empty; `handler` is the type of a new job. */
export function missingProperty({ others }: Draft, handler?: string): string | undefined {
  const row = (key: string) => others.find((each) => each.key.trim() === key);
  return Object.entries(REQUIRED).find(([type, key]) =>
    type === handler ? !row(key)?.value.trim() : row(key)?.value.trim() === "",
  )?.[1];
}

/** Applies the edits of a draft to a newer stored version. */
export function rebaseDraft(draft: Draft, before: Properties, theirs: Properties): Draft {
  const old = toDraft(before);
  const next = toDraft(theirs);
  const values = { ...next.values };
  for (const [key, value] of Object.entries(draft.values)) {
    if (value !== old.values[key]) values[key] = value;
  }
  return { values, others: rebaseOthers(draft.others, old.others, next.others) };
}

/** The same for properties without a field; a property removed on either side stays removed. */
function rebaseOthers(
  mine: Draft["others"],
  before: Draft["others"],
  theirs: Draft["others"],
): Draft["others"] {
  const by = (rows: Draft["others"]) => new Map(rows.map(({ key, value }) => [key.trim(), value]));
  const [ours, old, next] = [by(mine), by(before), by(theirs)];
  const isChangedHere = (key: string) => ours.get(key) !== old.get(key);
  const merged = theirs.flatMap(({ key, value }) => {
    if (!isChangedHere(key)) return [{ key, value }];
    const typed = ours.get(key);
    return typed === undefined ? [] : [{ key, value: typed }];
  });
  // A row with an empty key is still being typed.
  const added = mine.filter(({ key }) => {
    const name = key.trim();
    return name === "" || (isChangedHere(name) && !next.has(name));
  });
  return [...merged, ...added];
}
