import { Anchor, Breadcrumbs } from "@mantine/core";
import { Link, useNavigate, useParams } from "react-router";

import { useInstances, useServer } from "../../api/queries";
import { useRegistry, useTo } from "../../app/registry";
import { useText } from "../../i18n";
import { Badge } from "../../parts/Badge";
import { Card } from "../../parts/Card";
import { DataTable } from "../../parts/DataTable";
import { InstanceName } from "../../parts/InstanceName";
import { JobLink } from "../../parts/JobLink";
import { PageHead } from "../../parts/PageHead";
import { Failure, Loading } from "../../parts/states";
import { ServerMenu } from "./ServerMenu";
import { ServerBadge } from "./ServersPage";

export function ServerPage() {
  const t = useText();
  const to = useTo();
  const navigate = useNavigate();
  const registry = useRegistry();
  const { server: address = "" } = useParams();
  const server = useServer(registry, address);
  const instances = useInstances(registry, address, 1);
  const known = instances.data?.items.flatMap((each) => each.detail ?? []);
  const seen = server.data;
  return (
    <>
      <Breadcrumbs mb={6} fz="sm">
        <Anchor component={Link} to={to("servers")} fz="sm">
          {t.nav.servers}
        </Anchor>
        <span>{address}</span>
      </Breadcrumbs>
      <PageHead
        title={address}
        about={seen && t.servers.has(seen.instances.length, seen.jobNames.length)}
        badge={
          seen && (
            <ServerBadge
              jobs={seen.jobNames.length}
              disabled={seen.disabledJobsNum}
              instances={seen.instances.length}
            />
          )
        }
      >
        {seen && (
          <ServerMenu
            server={address}
            jobs={seen.jobNames.length}
            instances={seen.instances.length}
            onRemoved={() => void navigate(to("servers"))}
          />
        )}
      </PageHead>
      {server.isPending ? (
        <Loading />
      ) : !seen ? (
        <Failure error={server.error} again={() => void server.refetch()} />
      ) : (
        <Card title={t.servers.jobs} isFlush>
          <DataTable
            label={t.servers.jobs}
            rows={seen.jobList}
            keyOf={(job) => job.jobName}
            columns={[
              {
                head: t.jobs.name,
                cell: (job) => <JobLink name={job.jobName} />,
              },
              {
                head: t.servers.status,
                cell: (job) => (
                  <Badge tone={job.status === "ENABLED" ? "ok" : "off"}>
                    {t.servers.statuses[job.status]}
                  </Badge>
                ),
              },
              {
                head: t.servers.instances,
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
                head: t.jobs.actions,
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
