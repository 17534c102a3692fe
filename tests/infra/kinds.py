"""Schemas of Kubernetes objects: KubeRay's ray.io/v1 (1.6, by its API reference) and the core kinds that it uses.

Only the fields that infra/ uses are listed; all others are refused, so that a misspelled field fails. Add a documented field
here before its first use.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Quantity = Annotated[str, Field(pattern=r"^\d+(\.\d+)?(m|k|Ki|M|Mi|G|Gi|T|Ti)?$")]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$", max_length=63)]
Schedule = Annotated[str, Field(pattern=r"^(\S+ ){4}\S+$")]
Count = Annotated[int, Field(ge=0)]


class Kind(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Meta(Kind):
    name: Name
    namespace: Name | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}


class SecretKey(Kind):
    name: Name
    key: str


class Source(Kind):
    secretKeyRef: SecretKey


class Variable(Kind):
    name: str
    value: str | None = None
    valueFrom: Source | None = None


class Resources(Kind):
    requests: dict[str, Quantity] = {}
    limits: dict[str, Quantity] = {}


class Mount(Kind):
    name: Name
    mountPath: str
    readOnly: bool = False


class Container(Kind):
    name: Name
    image: str
    imagePullPolicy: Literal["Always", "IfNotPresent", "Never"] | None = None
    command: list[str] = []
    args: list[str] = []
    env: list[Variable] = []
    resources: Resources = Resources()
    volumeMounts: list[Mount] = []


class EmptyDir(Kind):
    medium: Literal["", "Memory"] = ""
    sizeLimit: Quantity | None = None


class Volume(Kind):
    name: Name
    emptyDir: EmptyDir | None = None


class PodSpec(Kind):
    containers: Annotated[list[Container], Field(min_length=1)]
    volumes: list[Volume] = []
    restartPolicy: Literal["Always", "OnFailure", "Never"] | None = None
    serviceAccountName: Name | None = None
    nodeSelector: dict[str, str] = {}
    tolerations: list[dict[str, Any]] = []


class PodTemplate(Kind):
    metadata: dict[str, Any] = {}
    spec: PodSpec


class Auth(Kind):
    mode: Literal["disabled", "token"]
    secretName: Name | None = None
    enableK8sTokenAuth: bool = False


class HeadGroup(Kind):
    rayStartParams: dict[str, str] = {}
    template: PodTemplate
    serviceType: Literal["ClusterIP", "NodePort", "LoadBalancer"] | None = None
    enableIngress: bool = False
    resources: dict[str, str] = {}
    labels: dict[str, str] = {}


class WorkerGroup(Kind):
    groupName: str
    replicas: Count = 0
    minReplicas: Count = 0
    maxReplicas: Count = 2**31 - 1
    idleTimeoutSeconds: Count | None = None
    numOfHosts: Count = 1
    rayStartParams: dict[str, str] = {}
    resources: dict[str, str] = {}
    labels: dict[str, str] = {}
    template: PodTemplate


class Autoscaler(Kind):
    version: Literal["v1", "v2"] | None = None
    idleTimeoutSeconds: Count | None = None
    upscalingMode: Literal["Default", "Aggressive", "Conservative"] | None = None


class ClusterSpec(Kind):
    rayVersion: str | None = None
    enableInTreeAutoscaling: bool = False
    autoscalerOptions: Autoscaler | None = None
    authOptions: Auth | None = None
    suspend: bool = False
    headServiceAnnotations: dict[str, str] = {}
    headGroupSpec: HeadGroup
    workerGroupSpecs: list[WorkerGroup] = []


class JobSpec(Kind):
    entrypoint: str
    entrypointNumCpus: float | None = None
    entrypointNumGpus: float | None = None
    entrypointResources: str | None = None
    submissionMode: Literal["K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"] = "K8sJobMode"
    runtimeEnvYAML: str | None = None
    metadata: dict[str, str] = {}
    shutdownAfterJobFinishes: bool = False
    ttlSecondsAfterFinished: Count = 0
    activeDeadlineSeconds: Annotated[int, Field(ge=1)] | None = None
    preRunningDeadlineSeconds: Annotated[int, Field(ge=1)] | None = None
    backoffLimit: Count = 0
    suspend: bool = False
    clusterSelector: dict[str, str] = {}
    rayClusterSpec: ClusterSpec | None = None
    submitterPodTemplate: PodTemplate | None = None


class RayCronJobSpec(Kind):
    schedule: Schedule
    jobTemplate: JobSpec
    suspend: bool = False


class BatchJobSpec(Kind):
    backoffLimit: Count = 6
    activeDeadlineSeconds: Annotated[int, Field(ge=1)] | None = None
    ttlSecondsAfterFinished: Count | None = None
    template: PodTemplate


class BatchJobTemplate(Kind):
    metadata: dict[str, Any] = {}
    spec: BatchJobSpec


class CronJobSpec(Kind):
    schedule: Schedule
    timeZone: str | None = None
    concurrencyPolicy: Literal["Allow", "Forbid", "Replace"] = "Allow"
    startingDeadlineSeconds: Count | None = None
    successfulJobsHistoryLimit: Count = 3
    failedJobsHistoryLimit: Count = 1
    suspend: bool = False
    jobTemplate: BatchJobTemplate


class RayJob(Kind):
    apiVersion: Literal["ray.io/v1"]
    kind: Literal["RayJob"]
    metadata: Meta
    spec: JobSpec


class RayCluster(Kind):
    apiVersion: Literal["ray.io/v1"]
    kind: Literal["RayCluster"]
    metadata: Meta
    spec: ClusterSpec


class RayCronJob(Kind):
    apiVersion: Literal["ray.io/v1"]
    kind: Literal["RayCronJob"]
    metadata: Meta
    spec: RayCronJobSpec


class CronJob(Kind):
    apiVersion: Literal["batch/v1"]
    kind: Literal["CronJob"]
    metadata: Meta
    spec: CronJobSpec
