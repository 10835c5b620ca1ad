import type { ComponentType } from "react";
import { useParams, useSearchParams } from "react-router";
import { Missing } from "../../app/Missing";
import { useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { LinkTabs } from "../../parts/LinkTabs";
import { PageHead } from "../../parts/PageHead";
import { Executions } from "./Executions";
import { Failures } from "./Failures";
import { Missed } from "./Missed";
import { Traces } from "./Traces";

const VIEWS: Record<string, ComponentType> = {
  executions: Executions,
  traces: Traces,
  failures: Failures,
  missed: Missed,
};
/** What holds for every view. */
const COMMON = ["job", "range", "from", "to"];

/** What was, in four views, each with an address of its own. */
export function HistoryPage() {
  const t = useText();
  const to = useTo();
  const { view = "executions" } = useParams();
  const [params] = useSearchParams();
  const View = VIEWS[view];
  if (!View) return <Missing />;
  const kept = new URLSearchParams([...params].filter(([key]) => COMMON.includes(key)));
  const search = kept.size > 0 ? `?${kept}` : "";
  return (
    <>
      <PageHead title={t.history.title} about={t.history.abouts[view]} />
      <LinkTabs
        label={t.history.views}
        value={view}
        tabs={Object.keys(VIEWS).map((value) => ({
          value,
          label: t.history.tabs[value] ?? value,
          to: `${value === "executions" ? to("history") : to("history", value)}${search}`,
        }))}
      >
        <View />
      </LinkTabs>
    </>
  );
}
