import { expect, test } from "vitest";

import type { Properties } from "../../../api/types";
import { isEdited, missingProperty, rebaseDraft, toDraft, toProperties } from "./draft";

const STORED: Properties = {
  jobName: "settle",
  cron: "0/10 * * * * ?",
  shardingTotalCount: 3,
  failover: true,
  misfire: true,
  monitorExecution: true,
  disabled: false,
  overwrite: false,
  staticSharding: false,
  maxTimeDiffSeconds: -1,
  reconcileIntervalMinutes: 10,
  jobListenerTypes: ["audit"],
  props: { "elasticjob.dst": "default", "streaming.process": "true", "email.password": "***" },
};

test("an unchanged draft converts back to the stored properties", () => {
  expect(toProperties(toDraft(STORED), STORED)).toEqual(STORED);
});

test("an empty field is omitted, and a number stays a number", () => {
  const draft = toDraft(STORED);
  draft.values.cron = "";
  draft.values.shardingTotalCount = "8";
  draft.values["props.elasticjob.dst"] = "";

  const sent = toProperties(draft, STORED);

  expect(sent).not.toHaveProperty("cron");
  expect(sent.shardingTotalCount).toBe(8);
  expect(sent.props).toEqual({ "streaming.process": "true", "email.password": "***" });
});

test("a draft is edited until the edit is taken back", () => {
  const draft = toDraft(STORED);
  expect(isEdited(draft, STORED)).toBe(false);
  draft.values.cron = "0 0 3 * * ?";
  expect(isEdited(draft, STORED)).toBe(true);
  draft.values.cron = STORED.cron ?? "";
  expect(isEdited(draft, STORED)).toBe(false);

  const added = { ...draft, others: [...draft.others, { key: "", value: "" }] };
  expect(isEdited(added, STORED)).toBe(false);
  const named = { ...draft, others: [...draft.others, { key: "team", value: "billing" }] };
  expect(isEdited(named, STORED)).toBe(true);
});

test("a script job needs a command, and an HTTP job a URL", () => {
  const draft = (props: Record<string, string>) => toDraft({ props });

  expect(missingProperty(draft({ "script.command.line": " " }))).toBe("script.command.line");
  expect(missingProperty(draft({ "script.command.line": "echo" }), "SCRIPT")).toBeUndefined();
  expect(missingProperty(draft({}), "SCRIPT")).toBe("script.command.line");
  expect(missingProperty(draft({ "http.uri": "" }), "HTTP")).toBe("http.uri");
  expect(missingProperty(draft({ team: "" }))).toBeUndefined();
});

test("a property with its old name is shown, and sent under one name", () => {
  const stored = { ...STORED, jobExecutorServiceHandlerType: "CPU" } as Properties;
  const draft = toDraft(stored);
  expect(draft.values.jobExecutorThreadPoolSizeProviderType).toBe("CPU");

  draft.values.jobExecutorThreadPoolSizeProviderType = "SINGLE_THREAD";

  const sent = toProperties(draft, stored);
  expect(sent.jobExecutorThreadPoolSizeProviderType).toBe("SINGLE_THREAD");
  expect(sent).not.toHaveProperty("jobExecutorServiceHandlerType");
});

test("rebase keeps both the newer version and the edits", () => {
  const draft = toDraft(STORED);
  draft.values.shardingTotalCount = "8";
  const theirs: Properties = { ...STORED, cron: "0 0 3 * * ?", shardingTotalCount: 5 };

  const merged = toProperties(rebaseDraft(draft, STORED, theirs), theirs);

  expect(merged.cron).toBe("0 0 3 * * ?");
  expect(merged.shardingTotalCount).toBe(8);
});

test("rebase merges properties without a field one by one", () => {
  const before: Properties = {
    ...STORED,
    props: { same: "1", mine: "1", theirs: "1", both: "1", gone: "1", dropped: "1" },
  };
  const theirs: Properties = {
    ...before,
    props: { same: "1", mine: "1", theirs: "2", both: "2", dropped: "1", added: "2" },
  };
  const draft = toDraft(before);
  draft.others = [
    { key: "same", value: "1" },
    { key: "mine", value: "3" },
    { key: "theirs", value: "1" },
    { key: "both", value: "3" },
    { key: "gone", value: "1" },
    { key: "typed", value: "3" },
    { key: "", value: "half" },
  ];

  const rebase = rebaseDraft(draft, before, theirs);

  expect(toProperties(rebase, theirs).props).toEqual({
    same: "1",
    mine: "3",
    theirs: "2",
    both: "3",
    added: "2",
    typed: "3",
  });
  expect(rebase.others).toContainEqual({ key: "", value: "half" });
});

test("rebase keeps an edited property that was removed elsewhere", () => {
  const before: Properties = { ...STORED, props: { note: "1" } };
  const draft = toDraft(before);
  draft.others = [{ key: "note", value: "2" }];

  const rebase = rebaseDraft(draft, before, { ...before, props: {} });

  expect(rebase.others).toEqual([{ key: "note", value: "2" }]);
});
