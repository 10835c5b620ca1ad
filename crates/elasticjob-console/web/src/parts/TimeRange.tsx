import { Select, TextInput } from "@mantine/core";

import { useText } from "../i18n";
import type { Narrowing } from "./filters";
import { instantOf, isRange, localOf, RANGES, spanOf } from "./range";

const CHOSEN = "chosen";

/** How far back, or from when until when. */
export function TimeRange({ filters }: { filters: Narrowing }) {
  const t = useText();
  const from = filters.value("from");
  const to = filters.value("to");
  const range = filters.value("range");
  const isChosen = from !== "" || to !== "";
  const choose = (value: string | null) => {
    if (value === CHOSEN) {
      const since = spanOf({ range: range || "1h" }, "1h", Date.now()).from ?? "";
      filters.change({ range: "", from: since, to: "" });
    } else {
      filters.change({ range: !value || value === filters.usual ? "" : value, from: "", to: "" });
    }
  };
  return (
    <>
      <Select
        aria-label={t.history.when}
        data={[...Object.keys(RANGES), CHOSEN].map((value) => ({
          value,
          label: t.history.ranges[value] ?? value,
        }))}
        value={isChosen ? CHOSEN : isRange(range) ? range : filters.usual}
        onChange={choose}
        allowDeselect={false}
      />
      {isChosen &&
        (["from", "to"] as const).map((key) => (
          <TextInput
            key={key}
            type="datetime-local"
            aria-label={t.history[key]}
            title={t.history[key]}
            value={localOf(filters.value(key))}
            onChange={(event) => filters.change({ [key]: instantOf(event.currentTarget.value) })}
          />
        ))}
    </>
  );
}
