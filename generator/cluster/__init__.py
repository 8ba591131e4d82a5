"""The edge to the cluster: what is asked of Slurm, or of this machine, and what comes back.

``protocol`` and ``job_file`` hold data and import nothing of submitit, so that pure modules may use
them. Clusters come from ``generator.cluster.registry``, which loads submitit when it is asked.
"""
