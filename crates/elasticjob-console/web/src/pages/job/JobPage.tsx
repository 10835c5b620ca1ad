import { Alert, Anchor, Breadcrumbs, Tabs } from "@mantine/core";
import { Link, useNavigate, useParams } from "react-router";

import { useJob } from "../../api/queries";
import { NotFoundPage } from "../../app/NotFoundPage";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { Icon } from "../../components/Icon";
import { PageHeader, usePageTitle } from "../../components/PageHeader";
import { ErrorState, Loading } from "../../components/states";
import { JobStatusBadge } from "../../components/statuses";
import { useText } from "../../i18n";
import { ConfigTab } from "./config/ConfigTab";
import { ExplainTab } from "./explain/ExplainTab";
import { JobActions } from "./JobActions";
import { ShardsTab } from "./shards/ShardsTab";

const TABS = ["shards", "config", "explain"];

export function JobPage() {
  const { job = "", tab = "shards" } = useParams();
  return TABS.includes(tab) ? <JobTabs name={job} tab={tab} /> : <NotFoundPage />;
}

function JobTabs({ name, tab }: { name: string; tab: string }) {
  const t = useText();
  const to = useRegistryLink();
  const navigate = useNavigate();
  const registry = useRegistry();
  const job = useJob(registry, name);
  const part = t.job.tabs[tab as keyof typeof t.job.tabs];
  // Before the job is loaded, and if it cannot be.
  usePageTitle(name, part);

  const crumbs = (
    <Breadcrumbs mb={6} fz="sm">
      <Anchor component={Link} to={to("jobs")} fz="sm">
        {t.nav.jobs}
      </Anchor>
      <span className="wrap">{name}</span>
    </Breadcrumbs>
  );
  if (job.isPending) {
    return (
      <>
        {crumbs}
        <Loading rows={8} />
      </>
    );
  }
  if (job.isError && !job.data) {
    return (
      <>
        {crumbs}
        <ErrorState error={job.error} onRetry={() => void job.refetch()} />
      </>
    );
  }
  const details = job.data;
  return (
    <>
      {crumbs}
      <PageHeader
        title={name}
        tabTitle={part}
        about={details.description}
        badge={
          <JobStatusBadge
            status={details.status}
            isDisabledInConfig={details.config.properties?.disabled === true}
          />
        }
      >
        <JobActions job={details} />
      </PageHeader>
      {details.problem && (
        <Alert
          color="red"
          variant="light"
          mb="md"
          icon={<Icon name="alert" />}
          title={t.job.unreadable}
        >
          {details.problem}
        </Alert>
      )}
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(next) =>
          void navigate(next === "shards" ? to("jobs", name) : to("jobs", name, next ?? ""))
        }
      >
        <Tabs.List mb="md" aria-label={t.job.sections}>
          <Tabs.Tab value="shards">{t.job.tabs.shards}</Tabs.Tab>
          <Tabs.Tab value="config">{t.job.tabs.config}</Tabs.Tab>
          <Tabs.Tab value="explain">{t.job.tabs.explain}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="shards">
          <ShardsTab job={details} />
        </Tabs.Panel>
        <Tabs.Panel value="config">
          <ConfigTab job={details} />
        </Tabs.Panel>
        <Tabs.Panel value="explain">
          <ExplainTab job={details} />
        </Tabs.Panel>
      </Tabs>
    </>
  );
}
