import type { ComponentType } from "react";
import { useParams, useSearchParams } from "react-router";

import { NotFoundPage } from "../../app/NotFoundPage";
import { useRegistryLink } from "../../app/registry";
import { LinkTabs } from "../../components/LinkTabs";
import { PageHeader } from "../../components/PageHeader";
import { useText } from "../../i18n";
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
/** Filters that are kept when switching views. */
const SHARED_FILTERS = ["job", "range", "from", "to"];

/** Four views of the history, each with its own URL. */
export function HistoryPage() {
  const t = useText();
  const to = useRegistryLink();
  const { view = "executions" } = useParams();
  const [params] = useSearchParams();
  const View = VIEWS[view];
  if (!View) return <NotFoundPage />;
  const shared = new URLSearchParams([...params].filter(([key]) => SHARED_FILTERS.includes(key)));
  const search = shared.size > 0 ? `?${shared}` : "";
  return (
    <>
      <PageHeader
        title={t.history.title}
        tabTitle={t.history.tabs[view]}
        about={t.history.abouts[view]}
      />
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
