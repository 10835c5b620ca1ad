import { Anchor, Breadcrumbs } from "@mantine/core";
import { Link, useNavigate, useParams } from "react-router";

import { useInstances, useServer } from "../../api/queries";
import { useRegistry, useRegistryLink } from "../../app/registry";
import { Badge } from "../../components/Badge";
import { Card } from "../../components/Card";
import { DataTable } from "../../components/DataTable";
import { InstanceName } from "../../components/InstanceName";
import { JobLink } from "../../components/JobLink";
import { PageHeader } from "../../components/PageHeader";
import { ErrorState, Loading } from "../../components/states";
import { useText } from "../../i18n";
import { ServerMenu } from "./ServerMenu";
import { ServerBadge } from "./ServersPage";

export function ServerPage() {
  const t = useText();
  const to = useRegistryLink();
  const navigate = useNavigate();
  const registry = useRegistry();
  const { server: address = "" } = useParams();
  const server = useServer(registry, address);
  const instances = useInstances(registry, address, 1);
  const known = instances.data?.items.flatMap((each) => each.detail ?? []);
  const data = server.data;
  return (
    <>
      <Breadcrumbs mb={6} fz="sm">
        <Anchor component={Link} to={to("servers")} fz="sm">
          {t.nav.servers}
        </Anchor>
        <span>{address}</span>
      </Breadcrumbs>
      <PageHeader
        title={address}
        about={data && t.servers.summary(data.instances.length, data.jobNames.length)}
        badge={
          data && (
            <ServerBadge
              jobs={data.jobNames.length}
              disabled={data.disabledJobsNum}
              instances={data.instances.length}
            />
          )
        }
      >
        {data && (
          <ServerMenu
            server={address}
            jobs={data.jobNames.length}
            instances={data.instances.length}
            onRemoved={() => void navigate(to("servers"))}
          />
        )}
      </PageHeader>
      {server.isPending ? (
        <Loading />
      ) : !data ? (
        <ErrorState error={server.error} onRetry={() => void server.refetch()} />
      ) : (
        <Card title={t.servers.jobs} isFlush>
          <DataTable
            label={t.servers.jobs}
            rows={data.jobList}
            keyOf={(job) => job.jobName}
            columns={[
              {
                header: t.jobs.name,
                cell: (job) => <JobLink name={job.jobName} />,
              },
              {
                header: t.servers.status,
                // Null if the job has instances on the server, but no node for the server itself.
                cell: (job) =>
                  job.status === null ? (
                    "–"
                  ) : (
                    <Badge tone={job.status === "ENABLED" ? "ok" : "off"}>
                      {t.servers.statuses[job.status]}
                    </Badge>
                  ),
              },
              {
                header: t.servers.instances,
                cell: (job) => (
                  <>
                    {job.instances.map((id, index) => (
                      <span key={id}>
                        {index > 0 && <>, </>}
                        <InstanceName id={id} known={known} />
                      </span>
                    ))}
                    {job.instances.length === 0 && "–"}
                  </>
                ),
              },
              {
                header: t.jobs.actions,
                isActions: true,
                width: 44,
                cell: (job) => (
                  <ServerMenu
                    server={address}
                    job={job.jobName}
                    jobs={1}
                    instances={job.instances.length}
                  />
                ),
              },
            ]}
          />
        </Card>
      )}
    </>
  );
}
