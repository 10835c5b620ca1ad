import { Select, TextInput } from "@mantine/core";

import { useText } from "../i18n";
import type { ListFilters } from "./filters";
import { fromLocalInput, isRange, RANGES, toLocalInput, toTimeSpan } from "./timeRange";

const CUSTOM = "chosen";

/** Selects a predefined or custom time range. */
export function TimeRangeFilter({ filters }: { filters: ListFilters }) {
  const t = useText();
  const from = filters.value("from");
  const to = filters.value("to");
  const range = filters.value("range");
  const isCustom = from !== "" || to !== "";
  const choose = (value: string | null) => {
    if (value === CUSTOM) {
      const since = toTimeSpan({ range: range || "1h" }, "1h", Date.now()).from ?? "";
      filters.change({ range: "", from: since, to: "" });
    } else {
      filters.change({
        range: !value || value === filters.defaultRange ? "" : value,
        from: "",
        to: "",
      });
    }
  };
  return (
    <>
      <Select
        aria-label={t.history.when}
        data={[...Object.keys(RANGES), CUSTOM].map((value) => ({
          value,
          label: t.history.ranges[value] ?? value,
        }))}
        value={isCustom ? CUSTOM : isRange(range) ? range : filters.defaultRange}
        onChange={choose}
        allowDeselect={false}
      />
      {isCustom &&
        (["from", "to"] as const).map((key) => (
          <TextInput
            key={key}
            type="datetime-local"
            aria-label={t.history[key]}
            title={t.history[key]}
            value={toLocalInput(filters.value(key))}
            onChange={(event) =>
              filters.change({ [key]: fromLocalInput(event.currentTarget.value) })
            }
          />
        ))}
    </>
  );
}
