import { expect, test } from "vitest";

import type { Properties } from "../../../api/types";
import { rebased, toDraft, toProperties } from "./draft";

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

test("a form that nobody touched sends back what was stored", () => {
  expect(toProperties(toDraft(STORED), STORED)).toEqual(STORED);
});

test("an emptied field is left out, a number stays a number", () => {
  const draft = toDraft(STORED);
  draft.values.cron = "";
  draft.values.shardingTotalCount = "8";
  draft.values["props.elasticjob.dst"] = "";

  const sent = toProperties(draft, STORED);

  expect(sent).not.toHaveProperty("cron");
  expect(sent.shardingTotalCount).toBe(8);
  expect(sent.props).toEqual({ "streaming.process": "true", "email.password": "***" });
});

test("a property of the older spelling is shown, and sent once", () => {
  const stored = { ...STORED, jobExecutorServiceHandlerType: "CPU" } as Properties;
  const draft = toDraft(stored);
  expect(draft.values.jobExecutorThreadPoolSizeProviderType).toBe("CPU");

  draft.values.jobExecutorThreadPoolSizeProviderType = "SINGLE_THREAD";

  const sent = toProperties(draft, stored);
  expect(sent.jobExecutorThreadPoolSizeProviderType).toBe("SINGLE_THREAD");
  expect(sent).not.toHaveProperty("jobExecutorServiceHandlerType");
});

test("what somebody else changed meanwhile is kept, and what was typed here too", () => {
  const draft = toDraft(STORED);
  draft.values.shardingTotalCount = "8";
  const theirs: Properties = { ...STORED, cron: "0 0 3 * * ?", shardingTotalCount: 5 };

  const merged = toProperties(rebased(draft, STORED, theirs), theirs);

  expect(merged.cron).toBe("0 0 3 * * ?");
  expect(merged.shardingTotalCount).toBe(8);
});
