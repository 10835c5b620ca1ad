import { expect, test } from "vitest";

import { parseQuery, toSearchParams } from "./jobsQuery";
import { putView } from "./savedViews";

test("a view of the same name is replaced", () => {
  const views = putView([{ name: "crashed", params: "a" }], { name: "crashed", params: "b" });

  expect(views).toEqual([{ name: "crashed", params: "b" }]);
});

test("a list query survives conversion to the URL and back", () => {
  const query = {
    search: 'status:CRASHED "two words"',
    status: "OK,CRASHED",
    sort: "nextFireTime",
    order: "desc" as const,
    page: 3,
    pageSize: 50,
  };

  expect(parseQuery(toSearchParams(query))).toEqual(query);
});
