import { createBrowserRouter, Navigate } from "react-router";

import { AccountPage } from "../pages/account/AccountPage";
import { AccountsPage } from "../pages/accounts/AccountsPage";
import { AuditPage } from "../pages/audit/AuditPage";
import { DoctorPage } from "../pages/doctor/DoctorPage";
import { HelpPage } from "../pages/help/HelpPage";
import { HistoryPage } from "../pages/history/HistoryPage";
import { InstancesPage } from "../pages/instances/InstancesPage";
import { JobPage } from "../pages/job/JobPage";
import { JobsPage } from "../pages/jobs/JobsPage";
import { NewJobPage } from "../pages/newjob/NewJobPage";
import { OverviewPage } from "../pages/overview/OverviewPage";
import { HistoriesPage } from "../pages/registries/HistoriesPage";
import { RegistriesPage } from "../pages/registries/RegistriesPage";
import { RunPage } from "../pages/runs/RunPage";
import { RunsPage } from "../pages/runs/RunsPage";
import { ServerPage } from "../pages/servers/ServerPage";
import { ServersPage } from "../pages/servers/ServersPage";
import { ErrorPage } from "./ErrorPage";
import { Home } from "./Home";
import { NotFoundPage } from "./NotFoundPage";
import { RegistryLayout } from "./RegistryLayout";
import { Shell } from "./Shell";

export const router = createBrowserRouter([
  {
    path: "/",
    element: <Shell />,
    errorElement: <ErrorPage />,
    children: [
      { index: true, element: <Home /> },
      // Without a session, every path shows the login form; this is where it leads with one.
      { path: "login", element: <Navigate to="/" replace /> },
      { path: "registries", element: <RegistriesPage /> },
      { path: "registries/histories", element: <HistoriesPage /> },
      { path: "accounts", element: <AccountsPage /> },
      { path: "account", element: <AccountPage /> },
      { path: "audit", element: <AuditPage /> },
      { path: "help", element: <HelpPage /> },
      {
        path: "r/:registry",
        element: <RegistryLayout />,
        children: [
          { index: true, element: <OverviewPage /> },
          { path: "jobs", element: <JobsPage /> },
          { path: "new-job", element: <NewJobPage /> },
          { path: "jobs/:job", element: <JobPage /> },
          { path: "jobs/:job/:tab", element: <JobPage /> },
          { path: "runs", element: <RunsPage /> },
          { path: "runs/:run", element: <RunPage /> },
          { path: "history", element: <HistoryPage /> },
          { path: "history/:view", element: <HistoryPage /> },
          { path: "servers", element: <ServersPage /> },
          { path: "servers/:server", element: <ServerPage /> },
          { path: "instances", element: <InstancesPage /> },
          { path: "doctor", element: <DoctorPage /> },
          { path: "*", element: <NotFoundPage /> },
        ],
      },
      { path: "*", element: <NotFoundPage /> },
    ],
  },
]);
