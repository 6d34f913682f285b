-- reads: groups, exceptions
-- Task groups of one cluster or of `clusters`, earliest first, dependencies by name; `computations` narrows to those
-- '<boot>-<no>', `limit` and `offset` to a part of them.
WITH mine AS (
    SELECT *
    FROM groups
    WHERE ($cluster::VARCHAR IS NULL OR cluster = $cluster)
      AND ($clusters::VARCHAR[] IS NULL OR cluster IN (SELECT unnest($clusters::VARCHAR[])))
),
-- Names are looked up for no more than is told.
told AS (
    SELECT *
    FROM mine
    WHERE $computations::VARCHAR[] IS NULL
       OR boot || '-' || computation IN (SELECT unnest($computations::VARCHAR[]))
    ORDER BY boot, no, cluster
    LIMIT $limit OFFSET $offset
),
edges AS (SELECT cluster, boot, no, unnest(dependencies) AS dependency FROM told),
named AS (
    SELECT e.cluster, e.boot, e.no, list(d.name ORDER BY d.no) AS names
    FROM edges e
    JOIN mine d ON d.cluster = e.cluster AND d.boot = e.boot AND d.no = e.dependency
    GROUP BY e.cluster, e.boot, e.no
),
-- Dask forgets the state of a failed task with the task; its exception stays.
failed AS (
    SELECT cluster, boot, group_no AS no, capped(sum(count)) AS n_tasks_erred
    FROM exceptions
    GROUP BY cluster, boot, group_no
)
SELECT g.* REPLACE (coalesce(n.names, []) AS dependencies), coalesce(f.n_tasks_erred, 0) AS n_tasks_erred
FROM told g
LEFT JOIN named n USING (cluster, boot, no)
LEFT JOIN failed f USING (cluster, boot, no)
ORDER BY g.boot, g.no, g.cluster
