import { expect, test } from "vitest";

import type { Shard } from "../../../api/types";
import { statusOf, toneOf } from "./lanes";

const IDLE = { status: "PENDING", isOwnerOnline: true } as Shard;

test("an idle shard of a disabled job is disabled", () => {
  expect(statusOf(IDLE, true)).toBe("DISABLED");
  expect(toneOf(IDLE, true)).toBe("off");
  expect(toneOf({ ...IDLE, isOwnerOnline: false }, true)).toBe("off");
  expect(statusOf(IDLE, false)).toBe("PENDING");
  expect(toneOf(IDLE, false)).toBe("ok");
});

test("a running shard of a disabled job is still running", () => {
  const running = { ...IDLE, status: "RUNNING", running: {} } as Shard;

  expect(statusOf(running, true)).toBe("RUNNING");
  expect(toneOf(running, true)).toBe("busy");
});
